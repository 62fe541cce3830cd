#pragma once

#include "runtime/reduction/reducer.hpp"
#include "runtime/schedule/collective.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ringmaster {

/// A shared-memory operation: a collective whose ranks' memories are all in this address space, and whose data is moved
/// for all of them at once.
struct shared_memory_operation {
  proto::CollectiveKind kind = proto::ALL_REDUCE;
  plan_request request;
  reducer combine;
  std::vector<double> factors;          ///< PREMUL_SUM: by rank.
  std::vector<const std::byte*> inputs; ///< By rank; nullptr where a rank has none.
  std::vector<std::byte*> outputs;      ///< The same. In place as in `in_place`, else separate from every input.
};

/// Computes each output element directly from all ranks' inputs and writes it to all ranks that receive it, in one pass
/// over memory. Reductions add in rank order, ((x0 + x1) + x2) + ..., as the shared-memory algorithms do with messages.
///
/// The work is cut into slices that depend on the inputs alone: any number of threads may run different slices at once,
/// in any order. An in-place operation destroys its inputs slice by slice: once started it must be completed. That is
/// always possible, since only the threads that run slices take part, even if the ranks have died.
class shared_memory_execution {
public:
  /// `slice_bytes`: about the bytes that one slice reads and writes.
  shared_memory_execution(shared_memory_operation operation, uint64_t slice_bytes);

  uint32_t slices() const noexcept { return static_cast<uint32_t>(slice_starts_.size()) - 1; }
  void run(uint32_t slice) const;
  /// Read and written by all slices.
  uint64_t bytes() const noexcept { return bytes_; }

private:
  static constexpr uint32_t all_ranks = UINT32_MAX;

  /// `count` elements that go the same way.
  struct piece {
    uint32_t from = all_ranks; ///< Whose input; all_ranks: the reduction of all.
    uint32_t to = all_ranks;   ///< Whose output.
    uint64_t source = 0;       ///< Element of the input.
    uint64_t destination = 0;  ///< Element of the output.
    uint64_t count = 0;
    bool swap = false; ///< Two ranks' blocks change places.
  };

  void plan();
  void plan_all_to_all();
  void add(const piece& x);
  uint64_t bytes_per_element(const piece& x) const;
  void run(const piece& x) const;
  void reduce(const piece& x) const;
  /// The reduction of `count` elements of all inputs from `at` on. `touched_bytes`: `bytes_` if `out` is an output, 0
  /// if it is to stay in the caches.
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
