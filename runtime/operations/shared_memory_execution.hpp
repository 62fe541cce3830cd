#pragma once

#include "runtime/reduction/reducer.hpp"
#include "runtime/schedule/collective.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ringmaster {

/// A joint operation: a collective whose ranks all lie in this address space, and whose data is moved for all of them
/// at once.
struct shared_memory_operation {
  proto::CollectiveKind kind = proto::ALL_REDUCE;
  plan_request request;
  reducer combine;
  std::vector<double> factors;          ///< PREMUL_SUM: by rank.
  std::vector<const std::byte*> inputs; ///< By rank; nullptr where a rank has none.
  std::vector<std::byte*> outputs;      ///< The same. In place as `in_place` has it, else apart from every input.
};

/// The shortest way there is: each output element is computed straight from all ranks' inputs and written to all ranks
/// that want it, in one pass over memory. Reductions add in rank order, ((x0 + x1) + x2) + ..., which is what the
/// algorithms that are `joint` do with messages.
///
/// The work is cut into slices that depend on nothing but the inputs: any number of threads may run different slices at
/// once, in any order. An in-place operation destroys its inputs slice by slice; once begun it must be completed.
/// Nobody but whoever runs the slices takes part, so that is always possible, whoever has died.
class shared_memory_execution {
public:
  /// `slice_bytes`: how much memory one slice touches, about.
  shared_memory_execution(shared_memory_operation operation, uint64_t slice_bytes);

  uint32_t slices() const noexcept { return static_cast<uint32_t>(slice_starts_.size()) - 1; }
  void run(uint32_t slice) const;
  /// Read and written by all slices.
  uint64_t bytes() const noexcept { return bytes_; }

private:
  static constexpr uint32_t everybody = UINT32_MAX;

  /// `count` elements that go the same way.
  struct piece {
    uint32_t from = everybody; ///< Whose input; everybody: the reduction of all.
    uint32_t to = everybody;   ///< Whose output.
    uint64_t source = 0;       ///< Element of the input.
    uint64_t destination = 0;  ///< Element of the output.
    uint64_t count = 0;
    bool swap = false; ///< With the block that lies there: two ranks' blocks, in place.
  };

  void plan();
  void plan_all_to_all();
  void add(const piece& x);
  uint64_t bytes_per_element(const piece& x) const;
  void run(const piece& x) const;
  void reduce(const piece& x) const;
  /// The reduction of `count` elements of all inputs from `at` on. `touched_bytes`: `bytes_` where `out` is an output,
  /// 0 where it is to stay in the caches.
  void reduce_to(std::byte* out, uint64_t at, uint64_t count, uint64_t touched_bytes) const;
  void copy(const piece& x) const;
  void swap(const piece& x) const;
  const std::byte* input(uint32_t rank, uint64_t element) const {
    return operation_.inputs[rank] + element * element_bytes_;
  }
  std::byte* output(uint32_t rank, uint64_t element) const {
    return operation_.outputs[rank] + element * element_bytes_;
  }

  shared_memory_operation operation_;
  uint64_t slice_bytes_;
  uint64_t element_bytes_;
  uint64_t bytes_ = 0;
  uint64_t slice_filled_ = 0;
  std::vector<piece> pieces_;
  std::vector<uint32_t> slice_starts_; ///< In `pieces_`, and its end.
};

} // namespace ringmaster
