// Averages and sums with factors at the ends of every datatype's range, over real memory: the same whatever the
// algorithm, and whether it is walked or moved jointly.
#include "runtime/algorithms/registry.hpp"
#include "tests/support/simulated_client.hpp"
#include "tests/support/trials/range_ends.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

struct average_options {
  const algorithm* which = nullptr;
  const known_datatype* type = nullptr;
  gpu_sim::ReduceOp op = gpu_sim::AVG;
  uint32_t ranks = 4;
  bool in_place = false;
  bool uneven = false; ///< The v-variant.
};

std::string text_of(const average_options& x) {
  return fmt::format("{} of {} by {} {}, {} ranks{}{}", name_of(x.op), x.type->name, name_of(x.which->kind),
                     x.which->name, x.ranks, x.in_place ? ", in place" : "", x.uneven ? ", uneven" : "");
}

class average_trial {
public:
  average_trial(simulated_cluster& host, const average_options& what, uint64_t salt)
    : cluster_(host), options_(what), world_{.world_size = what.ranks, .count = count, .root = what.ranks - 1} {
    for (uint32_t rank = 0; what.uneven && rank < what.ranks; ++rank)
      world_.counts.push_back(rank == 1 ? 0 : count - rank);
    comm_ = cluster_.init(what.ranks);
    REQUIRE(comm_.error() == "");
    for (uint32_t rank = 0; rank < what.ranks; ++rank) {
      inputs_.push_back(end_values(*what.type, rank, input_count(what.which->kind, world_, rank), salt));
      cluster_.copy_in(device(rank), base(rank), byte_block::of(std::vector{inputs_.back()}));
    }
  }

  /// What is wrong; empty: nothing.
  std::string run() {
    proto::CollectiveRequest x;
    x.set_comm_id(comm_.commid());
    auto& what = *x.mutable_collective();
    what.set_kind(options_.which->kind);
    what.set_algorithm(std::string{options_.which->name});
    what.set_datatype(options_.type->value);
    what.set_op(options_.op);
    what.set_count(world_.count);
    what.set_root(world_.root);
    what.mutable_counts()->Add(world_.counts.begin(), world_.counts.end());
    what.set_chunk_count(5);
    for (uint32_t rank = 0; rank < options_.ranks; ++rank) {
      x.add_inputs(base(rank));
      if (!options_.in_place)
        x.add_outputs(base(rank) + output_offset);
      if (options_.op == gpu_sim::PREMUL_SUM)
        what.add_factors(end_factor(*options_.type, rank));
    }
    if (auto problem = cluster_.ask_coordinator<proto::CollectiveResponse>(std::move(x)).error(); !problem.empty())
      return problem;
    if (auto problem = cluster_.wait(comm_.commid()).error(); !problem.empty())
      return problem;
    for (uint32_t rank = 0; rank < options_.ranks; ++rank)
      if (auto wrong = judge(rank); !wrong.empty())
        return fmt::format("rank {}, {}", rank, wrong);
    return {};
  }

private:
  static constexpr uint64_t count = 19;
  static constexpr uint64_t output_offset = 16384;

  std::string judge(uint32_t rank) {
    const auto element = options_.type->element_bytes;
    const auto kind = options_.which->kind;
    const auto outputs = output_count(kind, world_, rank);
    if (outputs == 0)
      return {};
    const auto start = options_.in_place ? in_place(kind, world_, rank).output * element : output_offset;
    const auto found = cluster_.copy_out(device(rank), base(rank) + start, outputs * element);
    std::vector<uint32_t> members;
    for (uint32_t member = 0; member < options_.ranks; ++member)
      members.push_back(member);
    for (uint64_t i = 0; i < outputs; ++i) {
      std::vector<const std::byte*> column;
      for (auto member : members)
        column.push_back(inputs_[member].data() + meaning_of(kind, world_, rank, i).index * element);
      if (auto wrong = wrong_average(*options_.type, options_.op, column, members, found.data() + i * element);
          !wrong.empty())
        return fmt::format("element {}: {}", i, wrong);
    }
    return {};
  }

  uint64_t device(uint32_t rank) const { return comm_.devices(static_cast<int>(rank)).deviceid().value(); }
  uint64_t base(uint32_t rank) const { return comm_.devices(static_cast<int>(rank)).minmemaddr().value(); }

  simulated_cluster& cluster_;
  average_options options_;
  plan_request world_;
  gpu_sim::CommInitResponse comm_;
  std::vector<std::vector<std::byte>> inputs_;
};

} // namespace

TEST_CASE("averages: every datatype by every algorithm has the exact result at the ends of its range") {
  uint64_t seed = 0;
  for (const auto& which : algorithms())
    for (uint32_t ranks : {2u, 3u, 4u, 5u, 8u})
      for (bool joint : {true, false}) {
        if (!reduces(which.kind) || (joint && !which.is.joint))
          continue;
        for (const auto& type : datatypes())
          for (auto op : {gpu_sim::AVG, gpu_sim::PREMUL_SUM}) {
            ++seed;
            average_options what{&which, &type, op, ranks, seed % 2 == 0, has_v_variant(which.kind) && seed % 3 == 0};
            CAPTURE(text_of(what));
            CAPTURE(joint);
            CAPTURE(seed);
            simulated_cluster cluster{{.seed = seed,
                                       .devices = ranks,
                                       .memory_bytes = 1u << 16,
                                       .share_memory = joint,
                                       .offer_memory = seed % 2 == 0,
                                       .devices_a_host = seed % 3 == 0 ? 2u : 0u}};
            CHECK(average_trial{cluster, what, seed}.run() == "");
          }
      }
}

TEST_CASE("averages: which datatypes want all inputs of an element at once") {
  for (const auto& type : datatypes()) {
    CAPTURE(type.name);
    CHECK(needs_all_inputs(type.value, gpu_sim::AVG)
          == (!type.is_float || (type.element_bytes < 4 && type.value != proto::BFLOAT16)));
    CHECK(needs_all_inputs(type.value, gpu_sim::PREMUL_SUM)
          == (type.is_float && type.element_bytes < 4 && type.value != proto::BFLOAT16));
    CHECK(!needs_all_inputs(type.value, gpu_sim::SUM));
  }
}
