// Programs that mix values which are nearly the right ones: of another shard, another step, another layer.
#include "training/simulated/simulator.hpp"

#include "messages/errc.hpp"
#include "tests/training/language/refused_run.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

/// Of a gather of what each of two ranks has of layer 0's weight.
std::string gather_of_shards(shard rank_0, shard rank_1, shard tensor_0 = {}, shard tensor_1 = {}) {
  return error_of(
    [=](rank& self) -> strategy {
      auto part = self.first() ? rank_0 : rank_1;
      auto [w, state] = co_await self.load_weights(0, part, part, self.first() ? tensor_0 : tensor_1);
      auto whole = co_await self.all_gather(w);
    },
    {1, 2, 1}, 2);
}

/// Weights, states and gradients of two layers, and again of parts of them, all of sample 0.
struct values {
  weight w0, w1, other, half, column;
  optimizer_state state0, state1, state_of_other, state_of_half, state_of_column;
  weight_gradient gradient0, again, gradient1, of_column, of_half;
};

strategy make(rank& self, values& all) {
  std::tie(all.w0, all.state0) = co_await self.load_weights(0);
  std::tie(all.other, all.state_of_other) = co_await self.load_weights(0);
  std::tie(all.w1, all.state1) = co_await self.load_weights(1);
  std::tie(all.half, all.state_of_half) = co_await self.load_weights(0, {0, 2});
  std::tie(all.column, all.state_of_column) = co_await self.load_weights(0, {}, {}, {0, 2});
  auto x0 = co_await self.input({0, 1});
  auto x1 = co_await self.forward(x0, all.w0);
  auto by_output = co_await self.loss(co_await self.forward(x1, all.w1));
  activation_gradient by_x1;
  std::tie(all.gradient1, by_x1) = co_await self.backward(x1, all.w1, by_output);
  all.gradient0 = co_await self.backward_weight(x0, all.w0, by_x1);
  all.again = co_await self.backward_weight(x0, all.w0, by_x1);
  all.of_column = co_await self.backward_weight(x0, all.column, by_x1);
  all.of_half = co_await self.slice(co_await self.backward_weight(x0, all.w0, by_x1), {0, 2});
}

/// Why the operation is refused that `last` begins with these values.
std::string refusal(const std::function<strategy(rank&, values&)>& last) {
  return error_of(
    [&](rank& self) -> strategy {
      values all;
      co_await make(self, all);
      co_await last(self, all);
    },
    {2, 1, 1}, 1);
}

std::string refused_update(weight values::*w, optimizer_state values::*state, weight_gradient values::*gradient) {
  return refusal([=](rank& self, values& all) -> strategy {
    co_await self.update(all.*w, all.*state, std::move(all.*gradient));
  });
}

std::string refused_sum(weight_gradient values::*sum, weight_gradient values::*more) {
  return refusal([=](rank& self, values& all) -> strategy { co_await self.add(all.*sum, std::move(all.*more)); });
}

const std::string w0 = "the weight of layer 0, step 0", state0 = "the optimizer state of layer 0, step 0",
                  gradient0 = "the gradient by the weight of layer 0, samples 0", no_fit = " does not fit ",
                  other_layer = ": it must be of layer 0", gather_them = ": gather, scatter or slice one of them";

/// What shard something is, and must be.
std::string is_and_must(const std::string& is, const std::string& must) {
  return "it is " + is + " and must be " + must;
}

} // namespace

TEST_CASE("mixed values: a gather takes no stale shard beside an updated one") {
  auto train = [](bool all_update) {
    return [=](rank& self) -> strategy {
      auto [part, state] = co_await self.load_weights(0, {self.index(), 2});
      auto w = co_await self.all_gather(part);
      auto x = co_await self.input({self.index(), self.index() + 1});
      auto y = co_await self.forward(x, w);
      auto [gradient, rest] = co_await self.backward(x, w, co_await self.loss(y));
      auto mine = co_await self.reduce_scatter(std::move(gradient), self.world());
      if (all_update || self.first())
        co_await self.update(part, state, std::move(mine));
      auto updated = co_await self.all_gather(part);
      CHECK(updated.tag().step == 1);
      co_await self.finish(std::move(updated));
    };
  };
  CHECK(simulate(train(true), {1, 2, 1}, 2, puzzle_costs()).engaged());
  CHECK(error_of(train(false), {1, 2, 1}, 2)
        == "rank 1, all_gather: the weight of layer 0, step 0, shard 1 of 2 does not go with the weight of layer 0, "
           "step 1, shard 0 of 2 of rank 0");
}

TEST_CASE("mixed values: a gather takes all shards of one whole, each once") {
  const std::string rank_1 = "rank 1, all_gather: the weight of layer 0, step 0, ";
  const std::string with_0 = " does not go with the weight of layer 0, step 0, shard 0 of 2";
  CHECK(gather_of_shards({0, 2}, {1, 4}) == rank_1 + "shard 1 of 4" + with_0 + " of rank 0");
  CHECK(gather_of_shards({0, 2}, {0, 2}) == rank_1 + "shard 0 of 2" + with_0 + " of rank 0");
  CHECK(gather_of_shards({0, 2}, {1, 2}, {0, 2}, {1, 2})
        == rank_1 + "shard 1 of 2, tensor shard 1 of 2" + with_0 + ", tensor shard 0 of 2 of rank 0");
  CHECK(gather_of_shards({0, 3}, {1, 3})
        == "rank 0, all_gather: 2 ranks do not have all of the 3 parts of the weight of layer 0, step 0, shard 0 of 3");
}

TEST_CASE("mixed values: of activations a gather takes shards of one kind and of the same samples") {
  auto gather = [](bool same_samples, bool same_form) {
    return error_of(
      [=](rank& self) -> strategy {
        auto x = co_await self.input({0, 1});
        auto mine = co_await self.slice(std::move(x), {self.index(), 2});
        auto other = co_await self.input(same_samples || self.first() ? range{0, 1} : range{1, 2});
        auto sequence = co_await self.slice(std::move(other), {self.index(), 2});
        auto heads = co_await self.all_to_all(std::move(mine), self.world());
        auto all = co_await self.all_gather(same_form || self.first() ? sequence : heads, self.world());
      },
      {1, 2, 1}, 2);
  };
  CHECK(gather(false, true)
        == "rank 1, all_gather: the input of layer 0, samples 1, sequence shard 1 of 2 does not go with the input of "
           "layer 0, samples 0, sequence shard 0 of 2 of rank 0");
  CHECK(gather(true, false)
        == "rank 1, all_gather: the input of layer 0, samples 0, column shard 1 of 2 does not go with the input of "
           "layer 0, samples 0, sequence shard 0 of 2 of rank 0");
}

TEST_CASE("mixed values: a sum over ranks takes gradients of one shard") {
  auto sum_of = [](bool by_tensor) {
    return error_of(
      [=](rank& self) -> strategy {
        auto [w, state] = co_await self.load_weights(0);
        auto [column, its_state] = co_await self.load_weights(0, {}, {}, {self.index(), 2});
        auto x = co_await self.input({self.index(), self.index() + 1});
        auto by_output = co_await self.loss(co_await self.forward(x, w));
        auto gradient = co_await self.backward_weight(x, by_tensor ? column : w, by_output);
        if (!by_tensor)
          gradient = co_await self.slice(std::move(gradient), {self.index(), 2});
        auto sum = co_await self.all_reduce(std::move(gradient));
      },
      {1, 2, 1}, 2);
  };
  CHECK(sum_of(true)
        == "rank 1, all_reduce: it has the gradient by the weight of layer 0, samples 1, tensor shard 1 of 2, rank 0 "
           "the gradient by the weight of layer 0, samples 0, tensor shard 0 of 2");
  CHECK(sum_of(false)
        == "rank 1, all_reduce: it has the gradient by the weight of layer 0, samples 1, shard 1 of 2, rank 0 the "
           "gradient by the weight of layer 0, samples 0, shard 0 of 2");
}

TEST_CASE("mixed values: a rank's sum takes no gradient of another layer, shard or tensor shard") {
  const std::string half = "shard 0 of 2", whole = "the whole", tensor = ": of what tensor-parallel ranks share ";
  CHECK(refused_sum(&values::gradient0, &values::gradient1)
        == "rank 0, add: the gradient by the weight of layer 1, samples 0" + no_fit + gradient0 + other_layer);
  CHECK(refused_sum(&values::gradient0, &values::of_half)
        == "rank 0, add: " + gradient0 + ", shard 0 of 2" + no_fit + gradient0 + ": " + is_and_must(half, whole)
             + gather_them);
  CHECK(refused_sum(&values::gradient0, &values::of_column)
        == "rank 0, add: " + gradient0 + ", tensor shard 0 of 2" + no_fit + gradient0 + tensor
             + is_and_must(half, whole));
  CHECK(refused_sum(&values::of_column, &values::gradient0)
        == "rank 0, add: " + gradient0 + no_fit + gradient0 + ", tensor shard 0 of 2" + tensor
             + is_and_must(whole, half));
}

TEST_CASE("mixed values: an update takes weight, state and gradient of one layer, shard and tensor shard") {
  using v = values;
  const std::string update = "rank 0, update: ", half = ", shard 0 of 2", column = ", tensor shard 0 of 2";
  const std::string not_whole = ": " + is_and_must("shard 0 of 2", "the whole") + gather_them,
                    not_half = ": " + is_and_must("the whole", "shard 0 of 2") + gather_them,
                    not_shared = ": of what tensor-parallel ranks share " + is_and_must("shard 0 of 2", "the whole");
  CHECK(refused_update(&v::w0, &v::state0, &v::gradient1)
        == update + "the gradient by the weight of layer 1, samples 0" + no_fit + w0 + other_layer);
  CHECK(refused_update(&v::w0, &v::state1, &v::gradient0)
        == update + "the optimizer state of layer 1, step 0" + no_fit + w0 + other_layer);
  CHECK(refused_update(&v::w0, &v::state0, &v::of_half) == update + gradient0 + half + no_fit + w0 + not_whole);
  CHECK(refused_update(&v::w0, &v::state_of_half, &v::gradient0) == update + state0 + half + no_fit + w0 + not_whole);
  CHECK(refused_update(&v::w0, &v::state0, &v::of_column) == update + gradient0 + column + no_fit + w0 + not_shared);
  CHECK(refused_update(&v::w0, &v::state_of_column, &v::gradient0)
        == update + state0 + column + no_fit + w0 + not_shared);
  CHECK(refused_update(&v::half, &v::state_of_half, &v::gradient0)
        == update + gradient0 + no_fit + w0 + half + not_half);
}

TEST_CASE("mixed values: an update takes nothing of another step") {
  auto after_one_update = [](weight values::*w, optimizer_state values::*state) {
    return refusal([=](rank& self, values& all) -> strategy {
      co_await self.update(all.w0, all.state0, std::move(all.gradient0));
      co_await self.update(all.*w, all.*state, std::move(all.again));
    });
  };
  CHECK(after_one_update(&values::w0, &values::state0)
        == "rank 0, update: " + gradient0 + no_fit
             + "the weight of layer 0, step 1: it is of step 0 and must be of step 1");
  CHECK(after_one_update(&values::other, &values::state0)
        == "rank 0, update: the optimizer state of layer 0, step 1" + no_fit + w0
             + ": it is of step 1 and must be of step 0");
  CHECK(after_one_update(&values::w0, &values::state_of_other)
        == "rank 0, update: " + state0 + no_fit
             + "the weight of layer 0, step 1: it is of step 0 and must be of step 1");
}
