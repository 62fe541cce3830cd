// Programs that cheat with positions that ranks share, and with experts; each must end with a sentence.
#include "training/simulated/simulator.hpp"

#include "messages/errc.hpp"
#include "tests/training/language/refused_run.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

const model one_layer{1, 2, 2};

/// A rank's share of the positions of both samples in one layer.
struct shared_layer {
  weight w;
  optimizer_state state;
  activation x;
  attention_keys keys;
};

strategy take_share(rank& self, shared_layer& at) {
  std::tie(at.w, at.state) = co_await self.load_weights(0);
  at.x = co_await self.slice(co_await self.input({0, 2}), {self.index(), self.world_size()});
  at.keys = co_await self.keys(at.x, at.w);
}

/// Why the share of a rank of `count` is refused.
std::string refusal_of_shared(const std::function<strategy(rank&, shared_layer&)>& then, uint32_t world_size = 2) {
  return error_of(
    [&](rank& self) -> strategy {
      shared_layer at;
      co_await take_share(self, at);
      co_await then(self, at);
    },
    one_layer, world_size);
}

/// The whole of attention, there and back, with gathered keys: what is left is to sum the gradient.
strategy there_and_back(rank& self, shared_layer& at, weight_gradient& gradient) {
  auto all = co_await self.all_gather(at.keys, self.world());
  auto made = co_await self.attend(at.x, all);
  auto y = co_await self.forward(at.x, at.w, std::move(made));
  auto by_output = co_await self.loss(y);
  auto by_keys = co_await self.reduce_scatter(co_await self.attend_backward(at.x, all, by_output), self.world());
  std::tie(gradient, by_output) = co_await self.backward(at.x, at.w, by_output, std::move(by_keys));
}

} // namespace

TEST_CASE("shared positions: runs join where one ends and the other begins, also around the end, and never twice") {
  auto joined = [](position_run a, position_run b) { return join(a, b) ? text_of(a) : "no"; };
  CHECK(joined({0, 1, 4}, {1, 1, 4}) == "positions 0 to 1 of 4");
  CHECK(joined({1, 1, 4}, {0, 1, 4}) == "positions 0 to 1 of 4");
  CHECK(joined({3, 1, 4}, {0, 2, 4}) == "positions 3 to 1 of 4");
  CHECK(joined({0, 3, 4}, {3, 1, 4}) == "all positions");
  CHECK(joined({0, 1, 4}, {2, 1, 4}) == "no");
  CHECK(joined({0, 2, 4}, {1, 2, 4}) == "no");
  CHECK(joined({0, 1, 4}, {0, 1, 4}) == "no");
  CHECK(joined({0, 1, 4}, {1, 1, 8}) == "no");
  CHECK(joined({}, {}) == "no");
  for (auto run : {position_run{}, {0, 1, 2}, {1023, 1, 1024}, {1022, 1023, 1024}}) {
    value_tag tag;
    tag.set_positions(run);
    CHECK(tag.positions() == run);
    CHECK(tag.tensor.whole());
  }
}

TEST_CASE("shared positions: a layer needs attention to all keys, each once") {
  CHECK(refusal_of_shared([](rank& self, shared_layer& at) -> strategy {
          auto made = co_await self.attend(at.x, at.keys);
          auto y = co_await self.forward(at.x, at.w, std::move(made));
        })
        == "rank 0, forward: it needs all positions, and has the attention of layer 0, samples 0-1, sequence shard 0 "
           "of 2, to positions 0 of 2");
  CHECK(refusal_of_shared([](rank& self, shared_layer& at) -> strategy {
          auto made = co_await self.attend(at.x, at.keys);
          co_await self.add(made, co_await self.attend(at.x, at.keys));
        })
        == "rank 0, add: the attention of layer 0, samples 0-1, sequence shard 0 of 2, to positions 0 of 2 does not go "
           "on where the attention of layer 0, samples 0-1, sequence shard 0 of 2, to positions 0 of 2 begins or ends");
  CHECK(refusal_of_shared([](rank& self, shared_layer& at) -> strategy { auto y = co_await self.forward(at.x, at.w); })
        == "rank 0, forward: it needs the whole, and has the input of layer 0, samples 0-1, sequence shard 0 of 2");
}

TEST_CASE("shared positions: attention takes keys of the same samples, cut in as many parts, and another's are sent") {
  CHECK(refusal_of_shared([](rank& self, shared_layer& at) -> strategy {
          auto other = co_await self.slice(co_await self.input({0, 1}), {self.index(), 2});
          auto keys = co_await self.keys(other, at.w);
          auto made = co_await self.attend(at.x, keys);
        })
        == "rank 0, attend: the keys of layer 0, samples 0, sequence shard 0 of 2 are not for the input of layer 0, "
           "samples 0-1, sequence shard 0 of 2");
  CHECK(refusal_of_shared([](rank& self, shared_layer& at) -> strategy {
          auto third = co_await self.slice(co_await self.input({0, 2}), {self.index(), 3});
          auto keys = co_await self.keys(third, at.w);
          auto made = co_await self.attend(at.x, keys);
        })
        == "rank 0, attend: the keys of layer 0, samples 0-1, sequence shard 0 of 3 are not for the input of layer 0, "
           "samples 0-1, sequence shard 0 of 2");
  CHECK(refusal_of_shared([](rank& self, shared_layer& at) -> strategy {
          auto [column, state] = co_await self.load_weights(0, {0, 2});
          auto keys = co_await self.keys(at.x, column);
        })
        == "rank 0, keys: it needs the whole, and has the weight of layer 0, step 0, shard 0 of 2");
}

TEST_CASE("shared positions: a backward needs the gradient by the rank's keys from all positions") {
  CHECK(refusal_of_shared([](rank& self, shared_layer& at) -> strategy {
          auto all = co_await self.all_gather(at.keys, self.world());
          auto y = co_await self.forward(at.x, at.w, co_await self.attend(at.x, all));
          auto by_output = co_await self.loss(y);
          auto mine = co_await self.attend_backward(at.x, at.keys, by_output);
          auto [gradient, by_input] = co_await self.backward(at.x, at.w, by_output, std::move(mine));
        })
        == "rank 1, backward: it needs all positions, and has the gradient by the keys of layer 0, samples 0-1, "
           "sequence shard 1 of 2, from positions 1 of 2");
  CHECK(refusal_of_shared([](rank& self, shared_layer& at) -> strategy {
          auto all = co_await self.all_gather(at.keys, self.world());
          auto y = co_await self.forward(at.x, at.w, co_await self.attend(at.x, all));
          auto by_output = co_await self.loss(y);
          auto [gradient, by_input] = co_await self.backward(at.x, at.w, by_output);
        })
        == "rank 1, backward: it needs the whole, and has the input of layer 0, samples 0-1, sequence shard 1 of 2");
}

TEST_CASE("shared positions: a gradient is by all positions before it counts") {
  CHECK(refusal_of_shared([](rank& self, shared_layer& at) -> strategy {
          weight_gradient gradient;
          co_await there_and_back(self, at, gradient);
          co_await self.update(at.w, at.state, std::move(gradient));
        })
        == "rank 0, update: the gradient by the weight of layer 0, samples 0-1, positions 0 of 2 does not fit the "
           "weight of layer 0, step 0: it is by positions 0 of 2 and must be by all positions: sum it over the ranks "
           "that share them");
  // Four ranks share the positions, and sum them by twos.
  CHECK(refusal_of_shared(
          [](rank& self, shared_layer& at) -> strategy {
            weight_gradient gradient;
            co_await there_and_back(self, at, gradient);
            gradient = co_await self.all_reduce(std::move(gradient), {self.index() / 2 * 2, 2, 1});
          },
          4)
        == "rank 3, all_reduce: the ranks do not have all positions of the gradient by the weight of layer 0, samples "
           "0-1, positions 3 of 4");
  // Every second one, where neighbours go on.
  CHECK(refusal_of_shared(
          [](rank& self, shared_layer& at) -> strategy {
            weight_gradient gradient;
            co_await there_and_back(self, at, gradient);
            gradient = co_await self.all_reduce(std::move(gradient), {self.index() % 2, 2, 2});
          },
          4)
        == "rank 2, all_reduce: the gradient by the weight of layer 0, samples 0-1, positions 2 of 4 does not go on "
           "where rank 0 ends, which has the gradient by the weight of layer 0, samples 0-1, positions 0 of 4");
}

TEST_CASE("shared positions: all of it adds up to the whole model, with gathered keys") {
  auto found = simulate(
    [](rank& self) -> strategy {
      shared_layer at;
      weight_gradient gradient;
      co_await take_share(self, at);
      co_await there_and_back(self, at, gradient);
      auto sum = co_await self.all_reduce(std::move(gradient));
      co_await self.update(at.w, at.state, std::move(sum));
      co_await self.finish(std::move(at.w));
    },
    one_layer, 4, lab_costs());
  REQUIRE_MESSAGE(found.engaged(), render(found.error()));
}

namespace {

/// Why it is refused what each of two ranks does, which has half of a layer's experts and its own sample.
std::string refusal_of_experts(const std::function<strategy(rank&, weight&, optimizer_state&, activation)>& then) {
  return error_of(
    [&](rank& self) -> strategy {
      auto [w, state] = co_await self.load_experts(0, {self.index(), 2});
      co_await then(self, w, state, co_await self.input({self.index(), self.index() + 1}));
    },
    one_layer, 2);
}

} // namespace

TEST_CASE("experts: they take the positions that are for them") {
  CHECK(refusal_of_experts([](rank& self, weight& w, optimizer_state&, activation x) -> strategy {
          auto y = co_await self.forward(x, w);
        })
        == "rank 0, forward: it needs the whole, and has the weight of layer 0, step 0, experts of rank 0 of 2");
  CHECK(refusal_of_experts([](rank& self, weight&, optimizer_state&, activation x) -> strategy {
          auto routed = co_await self.dispatch(std::move(x), self.world());
          auto [other, its_state] = co_await self.load_experts(0, {1 - self.index(), 2});
          auto y = co_await self.forward(routed, other);
        })
        == "rank 1, forward: it needs the whole, and has the input of layer 0, samples 0-1, for the experts of rank 1 "
           "of 2");
  CHECK(refusal_of_experts([](rank& self, weight&, optimizer_state&, activation) -> strategy {
          auto same = co_await self.input({0, 1});
          auto routed = co_await self.dispatch(std::move(same), self.world());
        })
        == "rank 1, all_to_all: the input of layer 0, samples 0 would count twice: the ranks before it have samples 0");
}

TEST_CASE("experts: a rank gets back the samples that went there, each once") {
  auto asks = [](range of_0, range of_1) {
    return refusal_of_experts([=](rank& self, weight& w, optimizer_state&, activation x) -> strategy {
      auto routed = co_await self.dispatch(std::move(x), self.world());
      auto y = co_await self.forward(routed, w);
      auto mine = co_await self.combine(std::move(y), self.first() ? of_0 : of_1, self.world());
    });
  };
  CHECK(asks({0, 2}, {1, 2})
        == "rank 1, all_to_all: the input of layer 1, samples 1 would count twice: the ranks before it have samples "
           "0-1");
  CHECK(asks({0, 1}, {1, 3}) == "rank 1, all_to_all: samples 1 to 3 are none of the global batch's 2");
  CHECK(refusal_of_experts([](rank& self, weight&, optimizer_state&, activation x) -> strategy {
          auto mine = co_await self.combine(std::move(x), {0, 1}, self.world());
        })
        == "rank 0, all_to_all: it needs what experts have made, and has the input of layer 0, samples 0");
}

TEST_CASE("experts: gradients of other experts are no summands of one sum") {
  CHECK(
    refusal_of_experts([](rank& self, weight& w, optimizer_state&, activation x) -> strategy {
      auto routed = co_await self.dispatch(std::move(x), self.world());
      auto y = co_await self.combine(co_await self.forward(routed, w), {self.index(), self.index() + 1}, self.world());
      auto by_output = co_await self.dispatch(co_await self.loss(y), self.world());
      auto [gradient, by_input] = co_await self.backward(routed, w, by_output);
      gradient = co_await self.all_reduce(std::move(gradient));
    })
    == "rank 1, all_reduce: it has the gradient by the weight of layer 0, samples 0-1, experts of rank 1 of 2, "
       "rank 0 the gradient by the weight of layer 0, samples 0-1, experts of rank 0 of 2");
}
