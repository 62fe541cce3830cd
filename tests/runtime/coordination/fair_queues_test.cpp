#include "runtime/coordination/fair_queues.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

using namespace ringmaster;

namespace {

using letter_queues = fair_queues<char, std::string>;

constexpr letter_queues::limits few_each{.in_mailbox = 2, .waiting_max = 3};

/// A receiver that takes what is in its mailbox in its order.
struct letter_box {
  letter_queues::place send(char peer, std::string what) {
    auto where = waiting.add(peer, what, few_each);
    if (where == letter_queues::place::mailbox)
      mailbox.push_back({peer, std::move(what)});
    return where;
  }
  std::string take() {
    auto [peer, what] = std::move(mailbox.front());
    mailbox.erase(mailbox.begin());
    if (auto next = waiting.handled(peer))
      mailbox.push_back({peer, std::move(*next)});
    return what;
  }

  letter_queues waiting;
  std::vector<std::pair<char, std::string>> mailbox;
};

} // namespace

TEST_CASE("fair_queues: who sends much is behind who sends little, keeps its order, and is refused at its limit") {
  letter_box x;
  CHECK(x.send('a', "a1") == letter_queues::place::mailbox);
  CHECK(x.send('a', "a2") == letter_queues::place::mailbox);
  CHECK(x.send('a', "a3") == letter_queues::place::queue);
  CHECK(x.send('a', "a4") == letter_queues::place::queue);
  CHECK(x.send('a', "a5") == letter_queues::place::queue);
  CHECK(x.send('a', "a6") == letter_queues::place::nowhere);
  CHECK(x.send('b', "b1") == letter_queues::place::mailbox);
  std::vector<std::string> taken;
  while (!x.mailbox.empty())
    taken.push_back(x.take());
  CHECK(taken == std::vector<std::string>{"a1", "a2", "b1", "a3", "a4", "a5"});
  CHECK(x.waiting.size() == 0); // nothing is kept of those who wait for nothing
  CHECK(x.send('a', "a7") == letter_queues::place::mailbox);
}

TEST_CASE("fair_queues: what is refused is not moved away, and what waits is handed out when the receiver ends") {
  letter_queues x;
  std::string text;
  for (int i = 0; i < 5; ++i)
    x.add('a', text = "a" + std::to_string(i), few_each);
  text = "refused";
  CHECK(x.add('a', text, few_each) == letter_queues::place::nowhere);
  CHECK(text == "refused");
  CHECK(x.take_all() == std::vector<std::string>{"a2", "a3", "a4"});
  CHECK_FALSE(x.handled('a'));
  CHECK(x.size() == 0);
}

TEST_CASE("fair_queues: whatever comes in whatever order, each peer keeps its order and its share") {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    std::mt19937 random{seed};
    letter_box x;
    std::map<char, int> sent, taken;
    for (int step = 0; step < 2000; ++step) {
      const auto peer = static_cast<char>('a' + random() % 5);
      if (random() % 2 == 0) {
        if (x.send(peer, std::string{peer} + std::to_string(sent[peer])) != letter_queues::place::nowhere)
          ++sent[peer];
      } else if (!x.mailbox.empty()) {
        const auto what = x.take();
        CHECK(what == what.substr(0, 1) + std::to_string(taken[what[0]]++));
      }
      std::map<char, size_t> shares;
      for (auto& each : x.mailbox)
        CHECK(++shares[each.first] <= few_each.in_mailbox);
    }
    while (!x.mailbox.empty()) {
      const auto what = x.take();
      CHECK(what == what.substr(0, 1) + std::to_string(taken[what[0]]++));
    }
    CHECK(taken == sent);
  }
}
