#pragma once

#include "runtime/reduction/datatypes.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ringmaster {

/// The input data of benchmarks, demos and tests, and their reductions, computed independently of the reduction
/// kernels. Every element of every rank has a different value, so a result with elements of the wrong position or rank
/// differs from the expected one.
///
/// - Data that are only moved are random bits.
/// - Integers that are reduced are random bits: sums and products wrap around. Factors are odd, since products of many
///   even numbers would be 0.
/// - Floats that are reduced are small whole numbers whose partial sums are exact in the datatype, so the result has
/// the
///   same bits in any order. If the datatype has too few digits for a sum over all ranks, only a few evenly spaced
///   ranks contribute to an element, and the others have the operation's neutral element; which ranks contribute
///   differs between elements. Factors of a product are 1 and -1, and 2 and 1/2 from a few ranks.
class sample_values {
public:
  /// `op`: the reduction; none if data are only moved. PREMUL_SUM and USER have no expected result. `ranks`: the
  /// maximum number of ranks reduced. `salt`: data of operations with different salts differ.
  sample_values(const known_datatype& type, std::optional<gpu_sim::ReduceOp> op, uint32_t ranks, uint64_t salt = 0);

  /// Stores elements [first, first + count) of `rank`'s input at `to`.
  void input(uint32_t rank, uint64_t first, uint64_t count, std::byte* to) const;
  /// Stores the reduction of these elements of the inputs of `members`, at least one.
  void reduced(std::span<const uint32_t> members, uint64_t first, uint64_t count, std::byte* to) const;

private:
  /// The elements computed at a time.
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
  uint64_t most_ = 0;  ///< The largest whole number used for floats.
  uint32_t every_ = 1; ///< One in this number of ranks contributes to an element.
};

} // namespace ringmaster
