#pragma once

#include "runtime/selection/least_squares.hpp"

#include <caf/error.hpp>

#include <cstdint>

namespace ringmaster {

/// Bytes of a rank, of those sizes that `tune` measures, from which on bandwidths show: below them latencies and noise
/// are all there is.
inline constexpr uint64_t bytes_wanted_between = 2u << 20, bytes_wanted_in_process = 1u << 20;

/// Which bandwidths a fit has seen: those of bytes that take some of the time of what was measured. From anything else
/// any number would fit. The fit and its observations must live as long.
class seen_rates {
public:
  seen_rates(const linear_fit& fit, std::span<const observation> observations)
    : fit_(fit), observations_(observations) {}

  double coefficient(size_t feature) const { return fit_.coefficients[feature]; }
  /// Whether the feature takes a twentieth of the time of any observation: less is lost in the fit's own error.
  bool has(size_t feature) const { return largest_share(feature) >= share_min; }

  /// Errors: aborted where it does not. `of`: as in "the bandwidth of ...".
  caf::error check(const char* of, size_t feature) const;

private:
  static constexpr double share_min = 0.05;

  double largest_share(size_t feature) const;

  const linear_fit& fit_;
  std::span<const observation> observations_;
};

} // namespace ringmaster
