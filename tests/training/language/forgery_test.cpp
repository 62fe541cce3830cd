// Programs that cheat, each of which must end with a sentence.
#include "training/simulated/simulator.hpp"

#include "messages/errc.hpp"
#include "tests/training/language/refused_run.hpp"

#include <doctest/doctest.h>

#include <type_traits>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

// A value of one kind cannot be made from one of another, nor assigned through what they have in common.
static_assert(
  !std::is_constructible_v<weight_gradient, activation> && !std::is_constructible_v<weight, optimizer_state&&>);
static_assert(!std::is_move_assignable_v<value> && !std::is_copy_constructible_v<weight>);

} // namespace

TEST_CASE("forgery: a broadcast gives no rank another kind") {
  CHECK(error_of(
          [](rank& self) -> strategy {
            if (self.index() == 0) {
              auto x = co_await self.input({0, 1});
              auto y = co_await self.broadcast(x, 0, self.world());
            } else {
              auto gradient = co_await self.broadcast(weight_gradient{}, 0, self.world());
            }
          },
          {1, 1, 1}, 2)
          .find("the ranks' collectives do not match: rank 0 calls broadcast of the input of layer 0")
        == 0);
}

TEST_CASE("forgery: an operation that is never awaited is reported") {
  CHECK(error_of(
          [](rank& self) -> strategy {
            auto [w, state] = co_await self.load_weights(0);
            auto never = self.finish(std::move(w));
          },
          {1, 1, 1}, 1)
        == "rank 0 has never awaited its finish of the weight of layer 0, step 0");
  CHECK(error_of(
          [](rank& self) -> strategy {
            auto [w, state] = co_await self.load_weights(0);
            auto x = co_await self.input({0, 1});
            auto beside = self.aside(self.forward(x, w));
            auto y = co_await std::move(beside);
          },
          {1, 1, 1}, 1)
        == "rank 0 cannot do aside its forward of the input of layer 0, samples 0");
}

TEST_CASE("forgery: an operation takes its arguments with it, and is awaited once") {
  CHECK(error_of(
          [](rank& self) -> strategy {
            auto [w, state] = co_await self.load_weights(0);
            auto x = co_await self.input({0, 1});
            auto later = self.forward(x, w);
            x.drop();
            auto y = co_await std::move(later);
          },
          {1, 1, 1}, 1)
        == "rank 0 has done something else before it awaited its forward of the input of layer 0, samples 0");
  CHECK(error_of(
          [](rank& self) -> strategy {
            auto [w, state] = co_await self.load_weights(0);
            auto x = co_await self.input({0, 1});
            auto once = self.forward(x, w);
            auto y = co_await once;
            auto z = co_await once;
          },
          {1, 1, 1}, 1)
        == "rank 0 has awaited twice its forward of the input of layer 0, samples 0");
}

TEST_CASE("forgery: no result is taken that is not there") {
  CHECK(error_of(
          [](rank& self) -> strategy {
            auto [w, state] = co_await self.load_weights(0);
            auto x = co_await self.input({0, 1});
            auto never = self.forward(x, w);
            auto y = never.await_resume();
          },
          {1, 1, 1}, 1)
        == "rank 0 has never awaited its forward of the input of layer 0, samples 0");
  CHECK(error_of(
          [](rank& self) -> strategy {
            auto [w, state] = co_await self.load_weights(0, {self.index(), 2});
            auto whole = self.aside(self.all_gather(w));
            auto early = whole.await_resume();
          },
          {1, 1, 1}, 2)
        == "rank 0 has never waited for its all_gather of the weight of layer 0, step 0, shard 0 of 2");
}

TEST_CASE("forgery: a rank waits for one thing at a time") {
  CHECK(error_of(
          [](rank& self) -> strategy {
            auto part = [&]() -> strategy { auto x = co_await self.receive<activation>(1 - self.index()); };
            auto a = part(), b = part();
            a.body().resume();
            b.body().resume();
            co_return;
          },
          {1, 1, 1}, 2)
        == "rank 0 goes on to its receive while it waits for its receive");
}

TEST_CASE("forgery: what is begun aside ends in its order, and not before it was begun") {
  auto found = simulate(
    [](rank& self) -> strategy {
      auto [shard, its_state] = co_await self.load_weights(0, {self.index(), 2});
      auto [w, state] = co_await self.load_weights(0);
      auto x = co_await self.input({0, 4});
      auto y = co_await self.forward(x, w);
      if (self.first()) // so that the other one is far ahead
        auto token = co_await self.receive<activation>(1);
      auto whole = self.aside(self.all_gather(shard));
      if (self.first()) {
        auto first = co_await self.input({0, 1}), second = co_await self.input({1, 2});
        auto one = self.aside(self.send(1, first)), two = self.aside(self.send(1, second));
        co_await std::move(one);
        co_await std::move(two);
        auto [gradient, rest] = co_await self.backward(x, w, co_await self.loss(y));
        co_await self.update(w, state, std::move(gradient));
        co_await self.finish(std::move(w));
      } else {
        co_await self.send(0, x);
        for (int i = 0; i < 25; ++i)
          y = co_await self.forward(x, w);
        auto one = self.aside(self.receive<activation>(0)), two = self.aside(self.receive<activation>(0));
        auto came = co_await std::move(one), next = co_await std::move(two);
        CHECK(came.tag().samples.first() == range{0, 1});
        CHECK(next.tag().samples.first() == range{1, 2});
      }
      auto all = co_await std::move(whole);
    },
    {1, 4, 4}, 2, puzzle_costs(), true);
  REQUIRE_MESSAGE(found.engaged(), render(found.error()));
  CHECK(found->memory_left == 0);
  for (auto& x : found->events)
    if (x.what == op::receive && x.aside)
      CHECK(x.start > 100);
}

TEST_CASE("forgery: a handle that is overwritten, empty or used twice is reported") {
  const model m{1, 2, 1};
  CHECK(error_of(
          [](rank& self) -> strategy {
            auto [w, state] = co_await self.load_weights(0, {self.index(), 2});
            auto first = self.aside(self.all_gather(w));
            first = self.aside(self.all_gather(w));
            auto whole = co_await std::move(first);
          },
          m, 2)
          .find("has never waited for its all_gather of the weight of layer 0, step 0, shard 0 of 2")
        != std::string::npos);
  CHECK(error_of(
          [](rank&) -> strategy {
            handle<weight> none;
            auto w = co_await std::move(none);
          },
          m, 1)
        == "a strategy has thrown an exception, the latest operation being rank 0's: a handle is waited for that is "
           "empty, or was waited for before");
}

TEST_CASE("forgery: a weight that was updated meanwhile is another one") {
  // The natural mistake of a zero-bubble schedule: the update before the other half of the backward.
  CHECK(error_of(
          [](rank& self) -> strategy {
            auto [w, state] = co_await self.load_weights(0);
            auto x = co_await self.input({0, 1});
            auto y = co_await self.forward(x, w);
            auto by_output = co_await self.loss(y);
            auto gradient = co_await self.backward_weight(x, w, by_output);
            co_await self.update(w, state, std::move(gradient));
            auto by_input = co_await self.backward_input(x, w, by_output);
          },
          {1, 1, 1}, 1)
        == "rank 0, backward_input: the input of layer 0, samples 0 is not for the weight of layer 0, step 1");
}

TEST_CASE("forgery: another rank's value must be sent") {
  activation* smuggled = nullptr;
  CHECK(error_of(
          [&](rank& self) -> strategy {
            auto [w, state] = co_await self.load_weights(0);
            if (self.index() == 0) {
              auto mine = co_await self.input({0, 1});
              smuggled = &mine;
              mine = co_await self.receive<activation>(1); // and waits
            } else {
              auto y = co_await self.forward(*smuggled, w);
            }
          },
          {1, 1, 1}, 2)
        == "rank 1, forward: the input of layer 0, samples 0 is another rank's, which has not sent it");
}

TEST_CASE("forgery: shards are gathered in the ranks' order") {
  CHECK(error_of(
          [](rank& self) -> strategy {
            auto [w, state] = co_await self.load_weights(0, {1 - self.index(), 2});
            auto whole = co_await self.all_gather(w);
          },
          {1, 1, 1}, 2)
        == "rank 0, all_gather: the weight of layer 0, step 0, shard 1 of 2 is not shard 0, which its place in the "
           "group is");
}

TEST_CASE("forgery: who makes columns of an output learns by these alone") {
  // By which columns of the gradient, and in which form the ranks want theirs of the sum.
  auto problem = [](bool own, bool alike) {
    return error_of(
      [=](rank& self) -> strategy {
        const shard mine{self.index(), 2}, other{1 - self.index(), 2};
        auto [w, state] = co_await self.load_columns(0, mine);
        auto x = co_await self.input({0, 1});
        auto y = co_await self.forward(x, w);
        auto all = co_await self.all_gather(y, self.world());
        auto by_output = co_await self.loss(all);
        by_output = co_await self.slice_columns(std::move(by_output), own ? mine : other);
        auto [by_weight, by_input] = co_await self.backward(x, w, by_output);
        auto sum = alike || self.first() ? co_await self.reduce_scatter_columns(std::move(by_input), self.world())
                                         : co_await self.reduce_scatter(std::move(by_input), self.world());
        auto [rows, its] = co_await self.load_weights(0, {}, {}, mine);
        co_await self.update(rows, its, std::move(by_weight));
      },
      {1, 1, 1}, 2);
  };
  CHECK(problem(false, true)
        == "rank 1, backward: the gradient by the input of layer 1, samples 0, column shard 0 of 2 is not by the "
           "columns that the weight of layer 0, step 0, column shard 1 of 2 makes");
  CHECK(problem(true, false)
        == "rank 1, reduce_scatter: it asks for a sequence shard of the gradient by the input of layer 0, samples 0, "
           "summand 0 of 2, and others for column shards");
  CHECK(problem(true, true)
        == "rank 0, update: the gradient by the weight of layer 0, samples 0, column shard 0 of 2 does not fit the "
           "weight of layer 0, step 0, tensor shard 0 of 2: one of them is of columns of the layer's output");
}

TEST_CASE("forgery: columns of a weight and its rows are no whole one") {
  auto program = [](rank& self) -> strategy {
    const shard mine{self.index(), 2};
    for (bool by_columns : {true, false}) {
      auto loaded = by_columns ? co_await self.load_columns(0, mine) : co_await self.load_weights(0, {}, {}, mine);
      auto& [w, state] = loaded;
      auto x = co_await self.input({0, 1});
      auto made = co_await self.forward(x, w);
      auto y = by_columns ? co_await self.all_gather(made, self.world())
                          : co_await self.all_reduce(std::move(made), self.world());
      auto by_output = co_await self.loss(y);
      if (by_columns)
        by_output = co_await self.slice_columns(std::move(by_output), mine);
      auto [by_weight, by_input] = co_await self.backward(x, w, by_output);
      co_await self.update(w, state, std::move(by_weight));
      if (by_columns == self.first())
        co_await self.finish(std::move(w));
    }
  };
  CHECK(error_of(program, {1, 1, 1}, 2)
        == "no rank has finished the whole weight of layer 0: update it, and finish it");
}

TEST_CASE("forgery: a sum on the host, a group beyond all ranks") {
  const model m{1, 2, 1};
  CHECK(error_of(
          [](rank& self) -> strategy {
            auto [w, state] = co_await self.load_weights(0);
            weight_gradient sum;
            for (uint64_t i = 0; i < 2; ++i) {
              auto x = co_await self.input({i, i + 1});
              auto y = co_await self.forward(x, w);
              auto [gradient, rest] = co_await self.backward(x, w, co_await self.loss(y));
              co_await self.add(sum, std::move(gradient));
              sum = co_await self.offload(std::move(sum));
            }
          },
          m, 1)
        == "rank 0, add: the gradient by the weight of layer 0, samples 0, on the host is to be fetched first");
  CHECK(error_of(
          [](rank& self) -> strategy {
            auto x = co_await self.input({0, 1});
            x = co_await self.all_reduce(std::move(x), {0, 65537, 65536});
          },
          m, 1)
          .find("a group of 65537 ranks from rank 0 in steps of 65536 is none of the 1 ranks there are")
        != std::string::npos);
}

TEST_CASE("forgery: second streams may hang on each other through any number of ranks") {
  const uint32_t ranks = 65536;
  auto found = simulate(
    [](rank& self) -> strategy {
      handle<activation> arrives;
      handle<> leaves;
      if (!self.first())
        arrives = self.aside(self.receive<activation>(self.previous()));
      auto x = co_await self.input({0, 1});
      if (!self.last())
        leaves = self.aside(self.send(self.next(), x));
      if (arrives.valid())
        x = co_await std::move(arrives);
      if (leaves.valid())
        co_await std::move(leaves);
      if (self.index() > 0)
        co_return;
      auto [w, state] = co_await self.load_weights(0);
      auto y = co_await self.forward(x, w);
      auto [gradient, rest] = co_await self.backward(x, w, co_await self.loss(y));
      co_await self.update(w, state, std::move(gradient));
      co_await self.finish(std::move(w));
    },
    {1, 1, 1}, ranks, puzzle_costs());
  REQUIRE_MESSAGE(found.engaged(), render(found.error()));
  CHECK(found->operations > ranks);
}
