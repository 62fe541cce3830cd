// What one rank's schedule may not do: the steps of a round may all be under way at once.
#include "runtime/schedule/schedule_check.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

#include <random>

using namespace ringmaster;

namespace {

constexpr uint32_t three_ranks = 3;
constexpr uint64_t room = 12; ///< Elements of each buffer.

step send(uint32_t to, block_range source) {
  return {.what = action::send, .peer = to, .source = source};
}

step recv(uint32_t from, block_range destination) {
  return {.what = action::recv, .peer = from, .destination = destination};
}

step after_it(step x) {
  x.then = true;
  return x;
}

/// What is wrong with these steps of one round, of rank 0.
caf::error fault_of(std::vector<step> steps) {
  return check_schedule(0, three_ranks, {1, room, std::move(steps)}, {room, room});
}

block_range scratch(uint64_t offset, uint64_t count) {
  return {buffer::scratch, offset, count};
}

bool overlap(const block_range& a, const block_range& b) {
  return a.where == b.where && a.offset < b.offset + b.count && b.offset < a.offset + a.count;
}

/// Whether x writes what y reads or writes.
bool disturbs(const step& x, const step& y) {
  return writes(x)
         && ((reads_own(y) && overlap(x.destination, y.source))
             || (writes(y) && overlap(x.destination, y.destination)));
}

/// As the schedule's comment says it: every two steps that no chain of `then` orders.
bool has_hazard(const std::vector<step>& steps) {
  for (size_t i = 0; i < steps.size(); ++i) {
    bool one_chain = true;
    for (size_t j = i + 1; j < steps.size(); ++j) {
      one_chain = one_chain && steps[j].then;
      if (!one_chain && (disturbs(steps[i], steps[j]) || disturbs(steps[j], steps[i])))
        return true;
    }
  }
  return false;
}

/// A step that is right for itself.
step random_step(std::mt19937_64& random) {
  auto range = [&](uint64_t count) {
    auto where = static_cast<buffer>(random() % 3);
    return block_range{where, random() % (room + 1 - count), count};
  };
  for (;;) {
    step x{.what = static_cast<action>(random() % 6), .peer = 1 + static_cast<uint32_t>(random() % 2)};
    auto count = 1 + random() % 6;
    if (is_local(x))
      x.peer = 0;
    if (reads_own(x))
      x.source = range(count);
    if (writes(x))
      x.destination = range(x.what == action::fold && count % 2 == 0 ? count / 2 : count);
    if (!fault_of({x}))
      return x;
  }
}

} // namespace

TEST_CASE("schedule check: every round of a few random steps is judged as the definition has it") {
  std::mt19937_64 random{20261122};
  size_t right = 0, wrong = 0;
  for (int i = 0; i < 60'000; ++i) {
    std::vector<step> steps;
    for (auto count = 2 + random() % 4; count > 0; --count) {
      steps.push_back(random_step(random));
      steps.back().then = steps.size() > 1 && random() % 2 == 0;
    }
    const auto fault = fault_of(steps);
    std::string text;
    for (auto& x : steps)
      text += (x.then ? ", then " : "; ") + text_of(x);
    CAPTURE(text);
    REQUIRE(static_cast<bool>(fault) == has_hazard(steps));
    (fault ? wrong : right)++;
  }
  CHECK(right > 5000);
  CHECK(wrong > 5000);
}

TEST_CASE("schedule check: a hazard behind the rank's own chain, which reaches further, is seen") {
  auto fault = fault_of({send(1, scratch(0, 12)), after_it(recv(1, scratch(6, 2))), send(2, scratch(4, 4))});
  CHECK(code_of(fault) == errc::invalid_argument);
  CHECK(render(fault)
        == "rank 0, round 0, step 1 (recv of scratch[6, 8) from rank 1): scratch[6, 8) is written while it may still "
           "be read by step 2 (send of scratch[4, 8) to rank 2)");
  CHECK_FALSE(fault_of({send(1, scratch(0, 12)), after_it(recv(1, scratch(6, 2))), send(2, scratch(2, 4))}));
  CHECK_FALSE(fault_of({send(1, scratch(0, 12)), after_it(recv(1, scratch(6, 2))), after_it(send(2, scratch(4, 4)))}));
}

TEST_CASE("schedule check: steps of different rounds, and of different buffers, do not disturb each other") {
  auto first = recv(1, scratch(0, 4)), second = send(2, scratch(2, 4));
  CHECK(fault_of({first, second}));
  second.round = 1;
  CHECK_FALSE(check_schedule(0, three_ranks, {2, room, {first, second}}, {room, room}));
  second = send(2, {buffer::output, 2, 4});
  CHECK_FALSE(fault_of({first, second}));
  // Twice over: the second round is looked at like the first.
  auto third = recv(1, {buffer::output, 3, 1});
  second.round = third.round = 1;
  CHECK(render(check_schedule(0, three_ranks, {2, room, {first, second, third}}, {room, room}))
        == "rank 0, round 1, step 2 (recv of output[3, 4) from rank 1): output[3, 4) is written while it may still be "
           "read by step 1 (send of output[2, 6) to rank 2)");
}

TEST_CASE("schedule check: what is wrong with a step alone") {
  auto text = [](step x) {
    const auto fault = render(fault_of({x}));
    return fault.substr(std::min(fault.size(), fault.find("): ") + 3));
  };
  CHECK(text(send(0, scratch(0, 1))) == "rank 0 is no peer for it");
  CHECK(text(send(3, scratch(0, 1))) == "rank 3 is no peer for it");
  CHECK(text(send(1, scratch(0, 0))) == "a step without elements");
  CHECK(text(send(1, scratch(12, 1))) == "scratch[12, 13) is out of bounds, there are 12 elements");
  CHECK(text(send(1, scratch(UINT64_MAX, 2))).find("is out of bounds") != std::string::npos);
  CHECK(text(recv(1, {buffer::input, 0, 1})) == "writes input[0, 1), and no rank writes an input");
  CHECK(text(recv(1, {buffer::output, 12, 1})) == "output[12, 13) is out of bounds, there are 12 elements");
  step finished = send(1, scratch(0, 1));
  finished.finish = true;
  CHECK(text(finished) == "a send finishes nothing");
  step copy{.what = action::copy, .peer = 0, .source = scratch(0, 4), .destination = scratch(3, 4)};
  CHECK(text(copy) == "scratch[3, 7) overlaps its own source scratch[0, 4)");
  copy.destination.count = 3;
  CHECK(text(copy) == "scratch[0, 4) does not fit scratch[3, 6)");
  copy.peer = 1;
  CHECK(text(copy) == "rank 1 is no peer for it");
  CHECK(text(after_it(send(1, scratch(0, 1)))) == "is marked `then` and is the first step of its round");
}
