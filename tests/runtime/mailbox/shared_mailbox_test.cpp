#include "runtime/mailbox/shared_mailbox.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

using namespace ringmaster;
using outcome = shared_mailbox::outcome;

namespace {

constexpr shared_mailbox::fingerprint same{7, 100}, other{7, 101};
constexpr uint64_t slot_bytes = 64;

/// A page, and each rank's view of it.
struct met_ranks {
  uint32_t ranks;
  std::unique_ptr<std::byte, decltype(&std::free)> memory;
  std::vector<shared_mailbox> views;

  explicit met_ranks(uint32_t count)
    : ranks(count), memory(static_cast<std::byte*>(std::aligned_alloc(4096, bytes_for(count))), &std::free) {
    std::memset(memory.get(), 0, bytes_for(count));
    for (uint32_t rank = 0; rank < count; ++rank) {
      views.emplace_back(memory.get(), count, slot_bytes, rank);
      REQUIRE(views.back().join());
    }
  }

  static size_t bytes_for(uint32_t count) { return (shared_mailbox::bytes_of(count, slot_bytes) + 4095) / 4096 * 4096; }
};

/// What a rank does at a call; a rank that arrives then looks until it is settled, or looks once and gives up.
enum class intent { arrives, arrives_with_another, passes, gives_up };

/// One rank's way through its calls, a step at a time.
struct walker {
  std::vector<intent> plan;
  size_t call = 0;
  int step = 0;
  std::vector<outcome> outcomes{};

  bool ended() const { return call == plan.size(); }
  uint64_t number() const { return call + 1; }

  void settle(outcome how) {
    outcomes.push_back(how);
    ++call;
    step = 0;
  }

  void go(shared_mailbox& page) {
    auto what = plan[call];
    auto& print = what == intent::arrives_with_another ? other : same;
    if (step == 0) {
      if (what == intent::passes || !page.others_are_near(number())) {
        page.pass(number());
        return settle(outcome::by_messages);
      }
      page.arrive(number(), print);
      ++step;
      return;
    }
    auto how = page.look(number(), print);
    if (how == outcome::open && what == intent::gives_up)
      how = page.give_up(number());
    if (how != outcome::open)
      settle(how);
  }
};

/// Whether a step would change anything: who waits for others and finds nothing new is not worth an order of its own.
bool all_ended(const std::vector<walker>& all) {
  return std::all_of(all.begin(), all.end(), [](auto& x) { return x.ended(); });
}

/// Runs the plans in the order that `pick` gives, which is asked among those that have not ended.
std::vector<walker> run(const std::vector<std::vector<intent>>& plans, const std::function<size_t(size_t)>& pick) {
  met_ranks page{static_cast<uint32_t>(plans.size())};
  std::vector<walker> all;
  for (auto& plan : plans)
    all.push_back({plan});
  for (int steps = 0; !all_ended(all); ++steps) {
    REQUIRE(steps < 10'000);
    std::vector<size_t> live;
    for (size_t i = 0; i < all.size(); ++i)
      if (!all[i].ended())
        live.push_back(i);
    auto rank = live[pick(live.size())];
    all[rank].go(page.views[rank]);
  }
  return all;
}

void judge(const std::vector<std::vector<intent>>& plans, const std::vector<walker>& all) {
  for (size_t call = 0; call < plans.front().size(); ++call) {
    bool met = all.front().outcomes[call] == outcome::met;
    for (size_t rank = 0; rank < all.size(); ++rank) {
      CAPTURE(call);
      CAPTURE(rank);
      REQUIRE((all[rank].outcomes[call] == outcome::met) == met);
      if (met) {
        REQUIRE(plans[rank][call] != intent::passes);
        REQUIRE((plans[rank][call] == intent::arrives_with_another)
                == (plans[0][call] == intent::arrives_with_another));
      }
    }
  }
}

} // namespace

TEST_CASE("ranks that call alike meet, and find each other's inputs") {
  met_ranks page{3};
  for (uint64_t number = 1; number <= 5; ++number) {
    for (uint32_t rank = 0; rank < 3; ++rank) {
      REQUIRE(page.views[rank].others_are_near(number));
      page.views[rank].slot(number)[0] = std::byte(10 * number + rank);
      page.views[rank].arrive(number, same);
      CHECK(page.views[rank].look(number, same) == (rank == 2 ? outcome::met : outcome::open));
    }
    for (uint32_t rank = 0; rank < 3; ++rank) {
      CHECK(page.views[rank].look(number, same) == outcome::met);
      for (uint32_t from = 0; from < 3; ++from)
        CHECK(page.views[rank].slot_of(from, number)[0] == std::byte(10 * number + from));
    }
  }
}

TEST_CASE("in every order two ranks come to the same, whatever each of them does") {
  constexpr intent all_intents[] = {intent::arrives, intent::arrives_with_another, intent::passes, intent::gives_up};
  constexpr uint32_t choices = 12; // steps whose order is tried in both ways; later steps alternate
  size_t met = 0, apart = 0;
  for (auto a : all_intents)
    for (auto b : all_intents)
      for (uint32_t order = 0; order < 1u << choices; ++order) {
        // Between two calls that can be met, so that one that is late meets one that is ahead.
        std::vector<std::vector<intent>> plans{{intent::arrives, a, intent::arrives},
                                               {intent::arrives, b, intent::arrives}};
        uint32_t step = 0;
        auto ended = run(plans, [&](size_t live) {
          auto bit = step < choices ? order >> step & 1 : step & 1;
          ++step;
          return bit % live;
        });
        judge(plans, ended);
        (ended[0].outcomes[1] == outcome::met ? met : apart) += 1;
      }
  CHECK(met > 0);
  CHECK(apart > 0);
}

TEST_CASE("in drawn orders three ranks come to the same") {
  constexpr intent drawn[] = {intent::arrives, intent::arrives,  intent::arrives, intent::arrives_with_another,
                              intent::passes,  intent::gives_up, intent::gives_up};
  std::mt19937 random{1};
  for (int trial = 0; trial < 5'000; ++trial) {
    std::vector<std::vector<intent>> plans(3);
    for (auto& plan : plans)
      for (int call = 0; call < 6; ++call)
        plan.push_back(drawn[random() % std::size(drawn)]);
    judge(plans, run(plans, [&](size_t live) { return random() % live; }));
  }
}

TEST_CASE("threads come to the same, and find the inputs of the calls that they met for") {
  constexpr uint32_t ranks = 3;
  constexpr uint64_t calls = 3'000;
  met_ranks page{ranks};
  std::vector<std::vector<outcome>> outcomes(ranks);
  std::vector<uint64_t> wrong(ranks);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      auto& own = page.views[rank];
      std::mt19937 random{rank};
      for (uint64_t number = 1; number <= calls; ++number) {
        auto how = outcome::by_messages;
        if (random() % 16 == 0 || !own.others_are_near(number)) {
          own.pass(number);
        } else {
          std::memcpy(own.slot(number).data(), &number, sizeof number);
          own.arrive(number, same);
          for (auto looks = random() % 16 == 0 ? 1 : 100'000; (how = own.look(number, same)) == outcome::open;)
            if (--looks <= 0)
              how = own.give_up(number);
            else
              std::this_thread::yield();
        }
        outcomes[rank].push_back(how);
        for (uint32_t from = 0; from < ranks && how == outcome::met; ++from)
          if (std::memcmp(own.slot_of(from, number), &number, sizeof number) != 0)
            ++wrong[rank];
      }
    });
  for (auto& x : threads)
    x.join();
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    CHECK(outcomes[rank] == outcomes[0]);
    CHECK(wrong[rank] == 0);
  }
}

TEST_CASE("no rank waits for one that has not joined, is far behind, or has a second handle") {
  SUBCASE("not there") {
    met_ranks page{2};
    shared_mailbox::fingerprint none{};
    std::memset(page.memory.get(), 0, met_ranks::bytes_for(2));
    REQUIRE(page.views[0].join());
    CHECK(!page.views[0].others_are_near(1));
    page.views[0].pass(1);
    CHECK(page.views[0].look(1, none) == outcome::by_messages);
  }
  SUBCASE("behind") {
    met_ranks page{2};
    page.views[0].pass(1);
    page.views[0].pass(2);
    CHECK(!page.views[0].others_are_near(3));
    page.views[1].arrive(1, same);
    CHECK(page.views[1].look(1, same) == outcome::by_messages);
  }
  SUBCASE("twice") {
    met_ranks page{2};
    shared_mailbox again{page.memory.get(), 2, slot_bytes, 1};
    CHECK(!again.join());
    CHECK(!page.views[0].others_are_near(1));
  }
  SUBCASE("closed while a rank waits") {
    met_ranks page{2};
    page.views[0].arrive(1, same);
    page.views[1].close();
    CHECK(page.views[0].look(1, same) == outcome::by_messages);
    page.views[1].pass(1);
    CHECK(page.views[1].look(1, same) == outcome::by_messages);
  }
}

// `pass` writes the arrival, then settles it: here the other rank looks between the two.
TEST_CASE("a call that is made by messages is not met by a rank that looks before that is settled") {
  met_ranks page{2};
  auto* words = reinterpret_cast<uint64_t*>(page.memory.get());
  const std::vector<uint64_t> before(words, words + met_ranks::bytes_for(2) / sizeof(uint64_t));
  page.views[1].arrive(1, same);
  std::vector<size_t> arrivals;
  for (size_t i = 0; i < before.size(); ++i)
    if (words[i] != before[i] && words[i] == 1 << 1) // the number of the call, and that it is to be met
      arrivals.push_back(i);
  REQUIRE(arrivals.size() == 1);
  words[arrivals[0]] |= 1; // by messages
  page.views[0].arrive(1, same);
  CHECK(page.views[0].look(1, same) == outcome::by_messages);
}

TEST_CASE("after millions of calls that went by messages ranks stop trying to meet") {
  met_ranks page{2};
  for (auto& x : page.views)
    x.pass(9'000'000);
  CHECK(!page.views[0].others_are_near(9'000'001));
  for (auto& x : page.views)
    x.pass(40'000'000); // further than the word can say
  CHECK(page.views[0].look(40'000'000, same) != outcome::met);
}
