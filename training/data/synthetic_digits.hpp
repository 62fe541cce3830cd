#pragma once

#include "training/data/data_set.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace ringmaster::training {

/// Digits of 28x28, 0 to 1, drawn one at a time: strokes, turned, stretched, sheared, bent and shifted, with a pen of
/// some width, and noise. A sample follows from the seed and its number alone, by additions, multiplications, divisions
/// and roots, which IEEE 754 rounds in one way: so it is the same on every machine, in any order.
class synthetic_digits final : public data_set {
public:
  static constexpr uint32_t count_max = uint32_t{1} << 31;

  /// The samples `first` to `first + count` - 1 of the seed's.
  synthetic_digits(uint64_t seed, uint32_t first, uint32_t count) : seed_(seed), first_(first), count_(count) {}

  std::string name() const override { return "synthetic digits"; }
  uint32_t count() const override { return count_; }
  sample_shape shape() const override { return {1, 28, 28}; }
  uint32_t label_count() const override { return 10; }
  uint64_t digest() const override;

private:
  void fill_one(uint32_t sample, std::span<float> input, std::span<uint32_t> labels) const override;

  uint64_t seed_;
  uint32_t first_, count_;
};

/// What is held out begins in the middle of all numbers there are, and so is the same whatever the other count. Errors:
/// invalid_argument for a count of 0 or above `count_max`.
caf::expected<opened_data> make_synthetic_digits(uint64_t seed, uint32_t training = 60'000, uint32_t held_out = 10'000);

struct stroke_point {
  double x = 0, y = 0; ///< In a square of side 1, x to the right and y down.
};
using stroke = std::vector<stroke_point>;

/// How 0 to 9 are written, each in one stroke or two.
std::span<const stroke> strokes_of(uint32_t digit);

} // namespace ringmaster::training
