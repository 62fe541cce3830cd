// Walkers that are driven by hand over plain buffers: the schedules of small worlds in every order in which steps may
// end.
#include "runtime/algorithms/registry.hpp"
#include "runtime/schedule/schedule_run.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string>

using namespace ringmaster;

namespace {

using elements = std::vector<uint64_t>;

/// A rank with its buffers, and the steps that it has started.
struct walker {
  schedule_run run;
  elements input, output, scratch;
  std::set<size_t> open;

  elements& buffer_of(buffer where) {
    return where == buffer::input ? input : where == buffer::output ? output : scratch;
  }
  uint64_t& at(const block_range& range, uint64_t i) { return buffer_of(range.where)[range.offset + i]; }

  void go_on() {
    while (!run.at_end() && open.empty()) {
      if (run.started()) {
        REQUIRE(run.round_over());
        run.next_round();
        continue;
      }
      auto steps = run.start_round();
      REQUIRE(steps);
      open.insert(steps->begin(), steps->end());
    }
  }
  void end(size_t index) {
    open.erase(index);
    if (auto next = run.ended(index))
      open.insert(*next);
    CHECK(run.round_over() == open.empty());
    go_on();
  }
};

/// All ranks of a world, each of which adds what it has to the others'.
class world {
public:
  world(proto::CollectiveKind kind, std::string_view algorithm, uint32_t ranks, uint64_t count) {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      plan_request request{.world_size = ranks, .rank = rank, .count = count};
      auto& x = ranks_.emplace_back();
      REQUIRE(!x.run.begin([=] { return plan(kind, algorithm, request); }));
      for (uint64_t i = 0; i < input_count(kind, request, rank); ++i)
        x.input.push_back(1000 * (rank + 1) + i);
      x.output.resize(output_count(kind, request, rank));
      x.scratch.resize(x.run.scratch_count());
    }
    for (auto& x : ranks_)
      x.go_on();
  }

  /// What may end next: a step alone, or a send with its receive.
  struct event {
    uint32_t rank = 0;
    size_t step = 0;
    uint32_t receiver = UINT32_MAX;
    size_t received = 0;
  };
  std::vector<event> possible() const {
    std::vector<event> result;
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank)
      for (auto index : ranks_[rank].open) {
        auto& x = ranks_[rank].run.at(index);
        if (x.what == action::copy || x.what == action::reduce || x.what == action::fold)
          result.push_back({rank, index});
        else if (x.what == action::send)
          for (auto other : ranks_[x.peer].open) {
            auto& y = ranks_[x.peer].run.at(other);
            if ((y.what == action::recv || y.what == action::recv_reduce) && y.peer == rank
                && ranks_[x.peer].run.block_of(other) == ranks_[rank].run.block_of(index))
              result.push_back({rank, index, x.peer, other});
          }
      }
    return result;
  }

  void apply(const event& x) {
    auto& rank = ranks_[x.rank];
    auto todo = rank.run.at(x.step);
    if (todo.what == action::send) {
      auto& to = ranks_[x.receiver];
      auto taken = to.run.at(x.received);
      REQUIRE(taken.destination.count == todo.source.count);
      for (uint64_t i = 0; i < todo.source.count; ++i)
        to.at(taken.destination, i) = rank.at(todo.source, i)
                                      + (taken.what == action::recv_reduce ? to.at(taken.source, i) : 0);
      to.end(x.received);
    } else {
      for (uint64_t i = 0; i < todo.destination.count; ++i) {
        auto lanes = todo.what == action::fold ? todo.source.count / todo.destination.count : 1;
        auto sum = todo.what == action::reduce ? rank.at(todo.destination, i) : 0;
        for (uint64_t lane = 0; lane < lanes; ++lane)
          sum += rank.at(todo.source, lane * todo.destination.count + i);
        rank.at(todo.destination, i) = sum;
      }
    }
    rank.end(x.step);
  }

  bool at_end() const {
    return std::all_of(ranks_.begin(), ranks_.end(), [](auto& x) { return x.run.at_end(); });
  }
  std::string text() const {
    std::string result;
    for (auto& x : ranks_)
      result += fmt::format("{} {} {} {}|", x.run.round(), fmt::join(x.open, ","), fmt::join(x.output, ","),
                            fmt::join(x.scratch, ","));
    return result;
  }
  const std::vector<walker>& ranks() const { return ranks_; }

private:
  std::vector<walker> ranks_;
};

/// Every order. Returns how many states there are.
template <class Check>
size_t walk_all(const world& begin, Check check) {
  std::set<std::string> seen;
  std::vector<world> open{begin};
  while (!open.empty()) {
    auto now = std::move(open.back());
    open.pop_back();
    auto events = now.possible();
    REQUIRE(events.empty() == now.at_end()); // no step waits for ever
    if (events.empty())
      check(now);
    for (auto& event : events) {
      auto next = now;
      next.apply(event);
      if (seen.insert(next.text()).second)
        open.push_back(std::move(next));
    }
  }
  return seen.size();
}

} // namespace

TEST_CASE("schedule run: whatever ends first, every rank has the sum of all inputs") {
  for (uint32_t ranks : {1, 2, 3})
    for (auto algorithm : {"ring", "naive", "direct", "tree", "ring_pipelined"}) {
      CAPTURE(ranks);
      CAPTURE(algorithm);
      size_t ends = 0;
      auto states = walk_all(world{proto::ALL_REDUCE, algorithm, ranks, 4}, [&](const world& x) {
        ++ends;
        for (auto& rank : x.ranks())
          for (uint64_t i = 0; i < 4; ++i)
            CHECK(rank.output[i] == 500 * ranks * (ranks + 1) + ranks * i);
      });
      CHECK(ends == 1);
      CHECK(states >= ranks - 1);
    }
}

TEST_CASE("schedule run: every rank gets every block, in every order of finished steps") {
  for (uint32_t ranks : {2, 3})
    for (auto algorithm : {"ring", "direct", "bruck"}) {
      CAPTURE(ranks);
      CAPTURE(algorithm);
      walk_all(world{proto::ALL_GATHER, algorithm, ranks, 2}, [&](const world& x) {
        for (auto& rank : x.ranks())
          for (uint64_t i = 0; i < 2 * ranks; ++i)
            CHECK(rank.output[i] == 1000 * (i / 2 + 1) + i % 2);
      });
    }
}

TEST_CASE("schedule run: of a long schedule there is a window, whose blocks are counted on") {
  constexpr uint32_t rounds = 400;
  schedule whole{rounds, 7, {}};
  for (uint32_t round = 0; round < rounds; ++round) {
    whole.steps.push_back({action::send, round, 1, {buffer::input, round, 1}, {}});
    whole.steps.push_back({action::recv, round, 1, {}, {buffer::output, round, 1}});
  }
  size_t plans = 0;
  schedule_run x;
  REQUIRE(!x.begin([&]() -> caf::expected<schedule> {
    ++plans;
    return whole;
  }));
  CHECK(x.scratch_count() == 7);
  for (uint32_t round = 0; round < rounds; ++round) {
    REQUIRE(!x.at_end());
    auto steps = x.start_round();
    REQUIRE(steps);
    REQUIRE(steps->size() == 2);
    for (auto index : *steps) {
      CHECK(x.at(index).round == round);
      CHECK(x.block_of(index) == round);
      CHECK(x.index_of(x.at(index)) == index);
      CHECK(!x.round_over());
      CHECK(!x.ended(index));
    }
    CHECK(x.round_over());
    x.next_round();
  }
  CHECK(x.at_end());
  CHECK(plans == 4); // 800 steps, 256 at a time
}

TEST_CASE("schedule run: a stopped run starts again, and late completions of the old run do not count") {
  schedule two{1,
               0,
               {{action::copy, 0, 0, {buffer::input, 0, 1}, {buffer::output, 0, 1}},
                {action::copy, 0, 0, {buffer::input, 1, 1}, {buffer::output, 1, 1}}}};
  schedule_run x;
  REQUIRE(!x.begin([&] { return caf::expected<schedule>{two}; }));
  REQUIRE(x.start_round());
  x.stop();
  CHECK(!x.started());
  CHECK(!x.ended(0));
  REQUIRE(!x.begin([&] { return caf::expected<schedule>{two}; }));
  REQUIRE(x.start_round()->size() == 2);
  x.ended(1);
  CHECK(!x.round_over());
  x.ended(0);
  CHECK(x.round_over());
}

TEST_CASE("schedule run: a chain starts one behind the other, within its round") {
  schedule chain{2,
                 0,
                 {{action::copy, 0, 0, {buffer::input, 0, 1}, {buffer::output, 0, 1}},
                  {action::copy, 0, 0, {buffer::input, 1, 1}, {buffer::output, 1, 1}, false, true},
                  {action::copy, 0, 0, {buffer::input, 2, 1}, {buffer::output, 2, 1}},
                  {action::copy, 1, 0, {buffer::input, 3, 1}, {buffer::output, 3, 1}}}};
  schedule_run x;
  REQUIRE(!x.begin([&] { return caf::expected<schedule>{chain}; }));
  CHECK(*x.start_round() == std::vector<size_t>{0, 2});
  CHECK(!x.ended(2));
  CHECK(x.ended(0) == std::optional<size_t>{1});
  CHECK(!x.round_over());
  CHECK(!x.ended(1));
  CHECK(x.round_over());
  x.next_round();
  CHECK(*x.start_round() == std::vector<size_t>{3});
}

TEST_CASE("schedule run: a round of more steps than a window has starts and ends as one") {
  constexpr size_t first_round = schedule_run::window_steps + 44, second_round = 10;
  schedule large{2, 0, {}};
  for (size_t i = 0; i < first_round + second_round; ++i) {
    const bool chained = i == schedule_run::window_steps; // its predecessor is the last step of a whole window
    large.steps.push_back(
      {action::copy, i < first_round ? 0u : 1u, 0, {buffer::input, i, 1}, {buffer::output, i, 1}, false, chained});
  }
  schedule_run x;
  REQUIRE(!x.begin([&] { return caf::expected<schedule>{large}; }));
  std::set<uint64_t> done; // elements
  auto end = [&](size_t index) {
    for (std::optional<size_t> next = index; next; next = x.ended(index)) {
      index = *next;
      CHECK(done.insert(x.at(index).source.offset).second);
    }
  };
  for (size_t expected : {first_round, first_round + second_round}) {
    auto steps = x.start_round();
    REQUIRE(steps);
    for (auto index : *steps)
      end(index);
    CHECK(done.size() == expected);
    REQUIRE(x.round_over());
    x.next_round();
  }
  CHECK(x.at_end());
}

TEST_CASE("schedule run: a step that ends after the walk was stopped starts no other one") {
  schedule chain{1,
                 0,
                 {{action::copy, 0, 0, {buffer::input, 0, 1}, {buffer::output, 0, 1}},
                  {action::copy, 0, 0, {buffer::input, 1, 1}, {buffer::output, 1, 1}, false, true}}};
  schedule_run x;
  REQUIRE(!x.begin([&] { return caf::expected<schedule>{chain}; }));
  REQUIRE(*x.start_round() == std::vector<size_t>{0});
  x.stop();
  CHECK(!x.ended(0)); // else step 1 would write memory that the next epoch uses
  CHECK(!x.round_over());
}
