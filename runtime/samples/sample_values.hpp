#pragma once

#include "runtime/reduction/datatypes.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ringmaster {

/// The input data of benchmarks, demos and tests, and what reducing them gives, computed apart from the reduction
/// kernels. Every element of every rank has a value of its own, so a result with elements of the wrong place or rank
/// differs from the expected one.
///
/// - Data that are only moved are random bits.
/// - Integers that are reduced are random bits, too: sums and products wrap around. Factors are odd, or products of
/// many
///   would be 0.
/// - Floats that are reduced are small whole numbers whose every partial sum is exact in the datatype, so the result
/// has
///   the same bits in any order. Where the datatype has too few digits for a sum over all ranks, an element has
///   contributions of only a few of them, evenly spaced, and the others have the operation's neutral element; which
///   ranks these are differs from element to element. Factors of a product are 1 and -1, and 2 and 1/2 from a few
///   ranks.
class sample_values {
public:
  /// `op`: the reduction; none where data are only moved. PREMUL_SUM and USER have no expected result. `ranks`: the
  /// most that are reduced. `salt`: makes data differ from those of other operations.
  sample_values(const known_datatype& type, std::optional<gpu_sim::ReduceOp> op, uint32_t ranks, uint64_t salt = 0);

  /// Stores elements [first, first + count) of `rank`'s input at `to`.
  void input(uint32_t rank, uint64_t first, uint64_t count, std::byte* to) const;
  /// Stores the reduction of these elements of the inputs of `members`, at least one.
  void reduced(std::span<const uint32_t> members, uint64_t first, uint64_t count, std::byte* to) const;

private:
  /// Elements that are computed at a time.
  static constexpr uint64_t piece = 512;
  using wide = __int128;

  bool contributes(uint32_t rank, uint64_t index) const;
  void whole_numbers(uint32_t rank, uint64_t first, std::span<wide> to) const;
  void real_numbers(uint32_t rank, uint64_t first, std::span<double> to) const;
  double real_number(uint32_t rank, uint64_t hash, uint64_t index) const;
  void combine(std::span<wide> result, std::span<const wide> next) const;
  void combine(std::span<double> result, std::span<const double> next) const;
  void store(std::span<const wide> values, std::byte* to) const;
  void store(std::span<const double> values, std::byte* to) const;

  template <class Number, class Numbers>
  void reduced_in(Numbers&& numbers, std::span<const uint32_t> members, uint64_t first, uint64_t count,
                  std::byte* to) const;

  const known_datatype& type_;
  std::optional<gpu_sim::ReduceOp> op_;
  uint64_t salt_;
  uint64_t most_ = 0;  ///< Of the whole numbers that floats hold.
  uint32_t every_ = 1; ///< One rank of so many contributes to an element.
};

} // namespace ringmaster
