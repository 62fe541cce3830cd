#include "planner/costs/transformer_costs.hpp"

#include "training/simulated/cost_model.hpp"

#include "tests/planner/small_gpt.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

constexpr cost_constants network{
  .latency_s = 20e-6, .bandwidth = 2e9, .message_overhead_s = 3e-6, .operation_s = 50e-6};

struct measured {
  measured() {
    how.set_degrees(2, 4, 1);
    costs = measured_costs(small_gpt, network, 10e9, how);
  }

  double time(op what, value_tag argument, uint32_t ranks) const {
    pending x;
    x.what = what;
    x.among = {0, ranks, 1};
    x.argument = argument;
    return costs->time_of(x, ranks);
  }

  training_setting how;
  std::unique_ptr<cost_model> costs;
};

/// What "auto" would take, of floats.
double selected(proto::CollectiveKind kind, uint32_t ranks, uint64_t count) {
  auto found = select_algorithm(kind, {.world_size = ranks, .count = count}, 4, network);
  REQUIRE(found);
  return found->time.total_s();
}

} // namespace

TEST_CASE("measured costs: a gradient's collective is that of the layer's shard, by the algorithm that auto picks") {
  measured x;
  const uint64_t parameters = 12 * 256 * 256 + 13 * 256;
  for (uint32_t tensor : {1, 2, 4})
    for (uint32_t ranks : {2, 4}) {
      CAPTURE(tensor);
      CAPTURE(ranks);
      value_tag gradient{.kind = value_kind::weight_gradient, .layer = 3, .tensor = {0, tensor}};
      const auto all = parameters / tensor;
      CHECK(x.time(op::all_reduce, gradient, ranks) == selected(proto::ALL_REDUCE, ranks, all));
      CHECK(x.time(op::reduce_scatter, gradient, ranks) == selected(proto::REDUCE_SCATTER, ranks, all / ranks));
      gradient.kind = value_kind::weight;
      CHECK(x.time(op::all_gather, gradient, ranks) == selected(proto::ALL_GATHER, ranks, all / ranks));
      CHECK(x.time(op::broadcast, gradient, ranks) == selected(proto::BROADCAST, ranks, all));
      CHECK(x.time(op::all_reduce, gradient, 1) == 0);
      gradient.layer = 0; // with the embedding
      CHECK(x.time(op::all_reduce, gradient, ranks)
            == selected(proto::ALL_REDUCE, ranks, (parameters + 256 * 1000) / tensor));
    }
}

TEST_CASE("measured costs: a layer exchanges its activations twice on its way") {
  measured x;
  value_tag activation{.kind = value_kind::activation, .layer = 2, .tensor = {0, 2}, .samples = range_set{range{0, 3}}};
  const uint64_t elements = 3 * 128 * 256;
  CHECK(x.time(op::all_reduce, activation, 2) == 2 * selected(proto::ALL_REDUCE, 2, elements));
  CHECK(x.time(op::all_to_all, activation, 4) == 2 * selected(proto::ALL_TO_ALL, 4, elements / 4));
}
