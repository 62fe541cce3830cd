#include "runtime/operations/shared_memory_execution.hpp"

#include "runtime/reduction/reduction.hpp"
#include "runtime/samples/sample_collective.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

using namespace ringmaster;

namespace {

/// The memory of all ranks of one collective, out of place or in place.
class shared_memory {
public:
  shared_memory(proto::CollectiveKind kind, const plan_request& request, proto::DataType type, gpu_sim::ReduceOp op,
                bool places)
    : kind_(kind), request_(request), type_(type), op_(op), places_(places), data_(kind, request, type, op) {
    for (uint32_t rank = 0; rank < request.world_size; ++rank) {
      const auto input = data_.input(rank);
      const auto own = at(rank);
      buffers_.emplace_back(std::max(element() * own.input + input.size(), end_of_output(rank)), std::byte{0xa5});
      std::copy(input.begin(), input.end(), buffers_.back().begin() + static_cast<ptrdiff_t>(element() * own.input));
      outputs_.emplace_back(places ? 0 : end_of_output(rank), std::byte{0xa5});
    }
  }

  shared_memory_operation operation() {
    shared_memory_operation result{kind_, request_, *reducer::of(type_, op_), {}, {}, {}};
    for (uint32_t rank = 0; rank < request_.world_size; ++rank) {
      result.inputs.push_back(buffers_[rank].data() + element() * at(rank).input);
      result.outputs.push_back((places_ ? buffers_ : outputs_)[rank].data() + element() * at(rank).output);
    }
    return result;
  }

  uint64_t count_wrong() {
    uint64_t wrong = 0;
    for (uint32_t rank = 0; rank < request_.world_size; ++rank)
      wrong += data_.count_wrong(rank, 0, output_count(kind_, request_, rank),
                                 (places_ ? buffers_ : outputs_)[rank].data() + element() * at(rank).output);
    return wrong;
  }

private:
  uint64_t element() const { return size_of(type_); }
  placement at(uint32_t rank) const { return places_ ? in_place(kind_, request_, rank) : placement{}; }
  uint64_t end_of_output(uint32_t rank) const {
    return element() * (at(rank).output + output_count(kind_, request_, rank));
  }

  proto::CollectiveKind kind_;
  plan_request request_;
  proto::DataType type_;
  gpu_sim::ReduceOp op_;
  bool places_;
  sample_collective data_;
  std::vector<std::vector<std::byte>> buffers_, outputs_; ///< By rank.
};

} // namespace

TEST_CASE("shared_memory_execution: all slices together move every element of every kind to its place, however small "
          "they are") {
  for (auto kind : collective_kinds())
    for (bool uneven : {false, true})
      for (bool places : {false, true})
        for (uint64_t slice_bytes : {64u, 240u, 4096u, 1u << 20}) {
          if (uneven && !has_v_variant(kind))
            continue;
          CAPTURE(name_of(kind));
          CAPTURE(uneven);
          CAPTURE(places);
          CAPTURE(slice_bytes);
          constexpr uint32_t ranks = 4;
          plan_request request{.world_size = ranks, .count = 113, .root = 2, .peer = 1};
          for (uint32_t a = 0; uneven && a < ranks; ++a)
            for (uint32_t b = 0; b < (kind == proto::ALL_TO_ALL ? ranks : 1); ++b)
              request.counts.push_back((a + b) * 37 % 90); // alike in both directions, as in place wants them
          shared_memory memory{kind, request, proto::FLOAT32, gpu_sim::SUM, places};
          const shared_memory_execution work{memory.operation(), slice_bytes};
          for (auto slice = work.slices(); slice > 0; --slice) // in any order
            work.run(slice - 1);
          CHECK(memory.count_wrong() == 0);
        }
}

TEST_CASE("shared_memory_execution: slices of large blocks are of the blocks' later elements, too") {
  constexpr uint64_t slice_bytes = 1u << 20; // as communicators cut
  for (auto kind : {proto::ALL_TO_ALL, proto::ALL_GATHER, proto::ALL_REDUCE, proto::REDUCE_SCATTER})
    for (bool places : {false, true}) {
      CAPTURE(name_of(kind));
      CAPTURE(places);
      shared_memory memory{kind, {.world_size = 4, .count = 600'001}, proto::FLOAT32, gpu_sim::SUM, places};
      const shared_memory_execution work{memory.operation(), slice_bytes};
      REQUIRE(work.slices() > 4);
      for (uint32_t slice = 0; slice < work.slices(); ++slice)
        work.run(slice);
      CHECK(memory.count_wrong() == 0);
    }
}
