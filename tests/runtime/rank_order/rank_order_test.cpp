#include "runtime/algorithms/registry.hpp"
#include "runtime/rank_order/rank_order.hpp"

#include "messages/errc.hpp"
#include "runtime/proof/proof.hpp"
#include "runtime/reduction/reducer.hpp"
#include "tests/support/references/rank_order_reference.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

std::vector<const algorithm*> reducing_algorithms() {
  std::vector<const algorithm*> result;
  for (const auto& x : algorithms())
    if (reduces(x.kind))
      result.push_back(&x);
  return result;
}

std::vector<plan_request> requests_for(proto::CollectiveKind kind, uint32_t world_size) {
  std::vector<plan_request> result;
  for (uint64_t count : {0, 1, 5, 16, 37})
    for (uint64_t chunk : {0, 3})
      for (uint32_t root = 0; root < (has_root(kind) ? world_size : 1); ++root)
        result.push_back({.world_size = world_size, .count = count, .root = root, .chunk = chunk});
  if (!has_v_variant(kind))
    return result;
  plan_request uneven{.world_size = world_size};
  for (uint32_t rank = 0; rank < world_size; ++rank)
    uneven.counts.push_back(rank * 3 % 5);
  result.push_back(uneven);
  return result;
}

/// Does to elements what the steps say, as a device would.
template <class T>
class element_walk : public walk_observer {
public:
  element_walk(const std::vector<schedule>& ranks, const reducer& combine, std::vector<std::vector<T>> inputs,
               const std::vector<buffer_counts>& counts)
    : ranks_(ranks), combine_(combine) {
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      memory_.push_back({std::move(inputs[rank]), std::vector<T>(counts[rank].output),
                         std::vector<T>(ranks[rank].scratch_count)});
  }

  caf::error moved(step_ref from, step_ref to) override {
    const auto& what = ranks_[to.rank].steps[to.index];
    const auto world_size = static_cast<uint32_t>(ranks_.size());
    const auto in = at(from.rank, ranks_[from.rank].steps[from.index].source);
    const auto out = at(to.rank, what.destination);
    const auto count = what.destination.count;
    if (what.what == action::fold) {
      std::vector<const std::byte*> lanes;
      for (uint64_t first = 0; first < what.source.count; first += count)
        lanes.push_back(in + first * sizeof(T));
      combine_.many(lanes, out, count, what.finish, world_size);
      return {};
    }
    if (receives(what) && what.what != action::recv)
      combine_(in, at(to.rank, what.source), out, count);
    else if (what.what == action::reduce)
      combine_(out, in, out, count);
    else
      std::memcpy(out, in, count * sizeof(T));
    if (what.finish)
      combine_.finish(world_size, out, count);
    return {};
  }

  const std::vector<T>& output(uint32_t rank) const { return memory_[rank][1]; }

private:
  std::byte* at(uint32_t rank, const block_range& range) {
    return reinterpret_cast<std::byte*>(memory_[rank][static_cast<size_t>(range.where)].data() + range.offset);
  }

  const std::vector<schedule>& ranks_;
  const reducer& combine_;
  std::vector<std::array<std::vector<T>, 3>> memory_; ///< By rank and buffer.
};

/// Runs the schedules on values at which arithmetic goes wrong, and compares every output with the plain loop.
template <class T>
void check_bits(const algorithm& which, const plan_request& request, const std::vector<schedule>& ranks,
                gpu_sim::ReduceOp op, uint64_t seed) {
  const auto combine = reducer::of(element<T>::type, op, subtract_in_rank_order);
  REQUIRE(combine.engaged());
  std::mt19937_64 random{seed};
  std::vector<std::vector<T>> inputs;
  for (uint32_t rank = 0; rank < request.world_size; ++rank)
    inputs.push_back(random_values<T>(random, input_count(which.kind, request, rank)));
  const auto right = added_in_rank_order(op, inputs);
  if (op == gpu_sim::PREMUL_SUM)
    for (uint32_t rank = 0; rank < request.world_size; ++rank)
      scale(element<T>::type, premul_factor(rank), reinterpret_cast<const std::byte*>(inputs[rank].data()),
            reinterpret_cast<std::byte*>(inputs[rank].data()), inputs[rank].size());
  const auto counts = buffer_counts_of(which.kind, request);
  element_walk<T> walk{ranks, *combine, std::move(inputs), counts};
  const auto walked = walk_schedules(ranks, counts, seed, walk);
  REQUIRE_MESSAGE(!walked.fault, render(walked.fault));
  for (uint32_t rank = 0; rank < request.world_size; ++rank)
    for (uint64_t i = 0; i < counts[rank].output; ++i) {
      CAPTURE(rank);
      CAPTURE(i);
      const auto from = meaning_of(which.kind, request, rank, i).index;
      REQUIRE(std::memcmp(&walk.output(rank)[i], &right[from], sizeof(T)) == 0);
    }
}

template <class T>
void check_all_ops(const algorithm& which, const plan_request& request, const std::vector<schedule>& ranks,
                   uint64_t seed) {
  CAPTURE(name_of(element<T>::type));
  for (auto op :
       {gpu_sim::SUM, gpu_sim::PROD, gpu_sim::MIN, gpu_sim::MAX, gpu_sim::AVG, gpu_sim::PREMUL_SUM, gpu_sim::USER}) {
    CAPTURE(name_of(op));
    check_bits<T>(which, request, ranks, op, seed);
  }
}

} // namespace

TEST_CASE("rank order: every algorithm is proved to add in rank order, in every small world, on any counts") {
  for (auto* which : reducing_algorithms())
    for (uint32_t world_size : {1, 2, 3, 4, 5, 6, 7, 8, 12, 17})
      for (const auto& request : requests_for(which->kind, world_size)) {
        CAPTURE(name_of(which->kind));
        CAPTURE(which->name);
        CAPTURE(world_size);
        CAPTURE(request.count);
        CAPTURE(request.chunk);
        CAPTURE(request.root);
        auto ranks = plan_all_in_rank_order(which->kind, which->name, request);
        REQUIRE(ranks.engaged());
        const auto found = prove(which->kind, request, *ranks, world_size, addition_order::ranks);
        REQUIRE_MESSAGE(!found.fault, render(found.fault));
        auto last = request;
        last.rank = world_size - 1;
        auto alone = plan_in_rank_order(which->kind, which->name, last);
        REQUIRE(alone.engaged());
        REQUIRE(*alone == ranks->back());
      }
}

TEST_CASE("rank order: every algorithm has the bits of a plain loop over the ranks, in every datatype and operation") {
  register_subtract_in_rank_order();
  uint64_t seed = 0;
  for (auto* which : reducing_algorithms())
    for (uint32_t world_size = 1; world_size <= 8; ++world_size)
      for (uint64_t count : {1, 13}) {
        plan_request request{.world_size = world_size, .count = count, .root = world_size / 2, .chunk = 2};
        CAPTURE(name_of(which->kind));
        CAPTURE(which->name);
        CAPTURE(world_size);
        CAPTURE(count);
        auto ranks = plan_all_in_rank_order(which->kind, which->name, request);
        REQUIRE(ranks.engaged());
        ++seed;
        check_all_ops<float>(*which, request, *ranks, seed);
        check_all_ops<double>(*which, request, *ranks, seed);
        check_all_ops<half>(*which, request, *ranks, seed);
        check_all_ops<brain>(*which, request, *ranks, seed);
        check_all_ops<e4m3>(*which, request, *ranks, seed);
        check_all_ops<e5m2>(*which, request, *ranks, seed);
      }
}

TEST_CASE("rank order: the ways and rounds of the algorithm stay, and its order without it is another one") {
  for (auto* which : reducing_algorithms()) {
    CAPTURE(name_of(which->kind));
    CAPTURE(which->name);
    plan_request request{.world_size = 6, .count = 24};
    auto plain = plan_all(which->kind, which->name, request);
    auto ordered = plan_all_in_rank_order(which->kind, which->name, request);
    REQUIRE(plain.engaged());
    REQUIRE(ordered.engaged());
    for (uint32_t rank = 0; rank < 6; ++rank) {
      auto ways = [&](const schedule& x) {
        std::vector<std::array<uint32_t, 3>> result;
        for (const auto& s : x.steps)
          if (!is_local(s))
            result.push_back({s.round, s.peer, s.what == action::send ? 1u : 0u});
        std::sort(result.begin(), result.end());
        result.erase(std::unique(result.begin(), result.end()), result.end());
        return result;
      };
      CHECK((*ordered)[rank].rounds == (*plain)[rank].rounds);
      CHECK(ways((*ordered)[rank]) == ways((*plain)[rank]));
    }
    auto fault = render(prove(which->kind, request, *plain, 1, addition_order::ranks).fault);
    CHECK(fault.find("in rank order only a fold adds") != std::string::npos);
  }
}

TEST_CASE("rank order: a ring keeps (N-1)/2 buffers of contributions, and its own") {
  plan_request request{.world_size = 8, .count = 800};
  auto ranks = plan_all_in_rank_order(proto::ALL_REDUCE, "ring", request);
  REQUIRE(ranks.engaged());
  auto found = prove(proto::ALL_REDUCE, request, *ranks, 1, addition_order::ranks);
  CHECK_MESSAGE(!found.fault, render(found.fault));
  for (uint32_t rank = 0; rank < 8; ++rank) {
    CHECK((*ranks)[rank].scratch_count == 7 * 800 / 2 + 100);
    CHECK(found.elements_sent[rank] == 7 * 800 / 2 + 700);
  }
}

TEST_CASE("rank order: the proof finds lanes that are out of order, and a fold of some ranks only") {
  plan_request request{.world_size = 3, .count = 2};
  auto fault_after = [&](auto change) {
    auto ranks = plan_all_in_rank_order(proto::ALL_REDUCE, "naive", request);
    auto& steps = (*ranks)[0].steps;
    change(*std::find_if(steps.begin(), steps.end(), [](auto& x) { return x.what == action::fold; }));
    return render(prove(proto::ALL_REDUCE, request, *ranks, 1, addition_order::ranks).fault);
  };
  CHECK(fault_after([](step& x) {
          x.source = {buffer::scratch, 2, 4};
        })
        == "rank 0, round 1, step 3 (fold of scratch[2, 6) into output[0, 2)): folds 2 lanes, and there are 3 ranks");
  CHECK(fault_after([](step& x) { x.source.count = 5; })
        == "rank 0, round 1, step 3 (fold of scratch[0, 5) into output[0, 2)): scratch[0, 5) does not fit "
           "output[0, 2)");
  auto ranks = plan_all_in_rank_order(proto::ALL_REDUCE, "naive", request);
  auto& steps = (*ranks)[0].steps;
  auto from_1 = std::find_if(steps.begin(), steps.end(), [](auto& x) { return x.what == action::recv && x.peer == 1; });
  auto from_2 = std::find_if(steps.begin(), steps.end(), [](auto& x) { return x.what == action::recv && x.peer == 2; });
  REQUIRE(from_1 != steps.end());
  REQUIRE(from_2 != steps.end());
  std::swap(from_1->destination, from_2->destination);
  CHECK(render(prove(proto::ALL_REDUCE, request, *ranks, 1, addition_order::ranks).fault)
        == "rank 0, round 1, step 3 (fold of scratch[0, 6) into output[0, 2)): lane 1 holds the input of rank 2 from "
           "element 0 on; in rank order it must hold the input of rank 1");
}

TEST_CASE("rank order: it matters for floats that are added or multiplied, and for users' functions") {
  CHECK(order_matters(proto::ALL_REDUCE, proto::FLOAT32, gpu_sim::SUM));
  CHECK(order_matters(proto::REDUCE, proto::FLOAT8_E4M3, gpu_sim::AVG));
  CHECK(order_matters(proto::REDUCE_SCATTER, proto::INT32, gpu_sim::USER));
  CHECK(!order_matters(proto::ALL_REDUCE, proto::INT32, gpu_sim::SUM));
  CHECK(!order_matters(proto::ALL_REDUCE, proto::FLOAT64, gpu_sim::MAX));
  CHECK(!order_matters(proto::BROADCAST, proto::FLOAT64, gpu_sim::SUM));
}

TEST_CASE("rank order: kinds without a reduction keep their plan, and an impossible plan has a reason") {
  plan_request request{.world_size = 4, .count = 8};
  CHECK(*plan_in_rank_order(proto::ALL_GATHER, "ring", request) == *plan(proto::ALL_GATHER, "ring", request));
  auto unknown = plan_in_rank_order(proto::ALL_REDUCE, "rign", request);
  REQUIRE(!unknown.engaged());
  CHECK(render(unknown.error()).find("there is no algorithm \"rign\"") != std::string::npos);
}
