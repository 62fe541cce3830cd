#pragma once

#include "training/data/python_random.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace ringmaster::training {

inline constexpr uint64_t partitioned_samples_max = uint64_t{1} << 27;

/// A part of a whole, above 0 and 1 at most, exactly as it is written: 0.29 of 100 is 29, which it is not as a double.
struct decimal_fraction {
  static constexpr uint64_t one = 1'000'000'000'000'000'000;
  uint64_t value = one; ///< Of `one`.

  uint64_t of(uint64_t count) const; ///< Rounded down.
};

/// "0.7", ".25", "1": digits with one point at most, 18 of them after it. Errors: invalid_argument.
caf::expected<decimal_fraction> parse_fraction(std::string_view text);
/// "0.7,0.2,0.1". Errors: invalid_argument, also where they are more than 1 together.
caf::expected<std::vector<decimal_fraction>> parse_fractions(std::string_view text);

/// How many samples each rank gets, floor(samples / ranks) or floor(fraction * samples), which may be none. Errors:
/// invalid_argument for no rank, and for fractions that are more than 1 together.
caf::expected<std::vector<uint64_t>> equal_counts(uint64_t samples, uint64_t ranks);
caf::expected<std::vector<uint64_t>> counts_by(uint64_t samples, std::span<const decimal_fraction> fractions);

/// Told now and then which part of an order is made.
using partition_watch = std::function<void(double part)>;

/// 0 to count - 1, in the order that CPython's random.Random(seed + (high << 64)).shuffle(list(range(count))) leaves.
std::vector<uint32_t> shuffled_samples(uint32_t count, uint64_t seed, uint64_t high = 0,
                                       const partition_watch& watch = {});
/// The same of a seed of any size.
std::vector<uint32_t> shuffled_samples(uint32_t count, const python_seed& seed, const partition_watch& watch = {});

/// Which sample goes to which rank: the shuffled samples, cut from the front.
class sample_partition {
public:
  /// `counts`: by rank; no more than `samples` together, which are `partitioned_samples_max` at most.
  sample_partition(uint64_t samples, const python_seed& seed, std::span<const uint64_t> counts,
                   const partition_watch& watch = {});
  sample_partition(uint64_t samples, uint64_t seed, std::span<const uint64_t> counts)
    : sample_partition(samples, python_seed{seed}, counts) {}

  uint32_t ranks() const noexcept { return static_cast<uint32_t>(ends_.size()) - 1; }
  std::span<const uint32_t> of(uint32_t rank) const {
    return std::span{order_}.subspan(ends_[rank], ends_[rank + 1] - ends_[rank]);
  }
  /// What no rank gets.
  std::span<const uint32_t> left_over() const { return std::span{order_}.subspan(ends_.back()); }

private:
  std::vector<uint32_t> order_;
  std::vector<uint64_t> ends_; ///< 0, and where each rank's end.
};

} // namespace ringmaster::training
