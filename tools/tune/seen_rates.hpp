#pragma once

#include "runtime/selection/least_squares.hpp"

#include <caf/error.hpp>

#include <cstdint>

namespace ringmaster {

/// The minimal largest size of a rank for measuring bandwidths: smaller sizes show latencies and noise only.
inline constexpr uint64_t bytes_wanted_between = 2u << 20, bytes_wanted_in_process = 1u << 20;

/// Which bandwidths a fit determines: those whose bytes take a part of the measured time. Any other would fit any
/// number. Refers to the fit and its observations.
class seen_rates {
public:
  seen_rates(const linear_fit& fit, std::span<const observation> observations)
    : fit_(fit), observations_(observations) {}

  double coefficient(size_t feature) const { return fit_.coefficients[feature]; }
  /// Whether the feature takes a twentieth of the time of any observation. Less is below the error of the fit.
  bool has(size_t feature) const { return largest_share(feature) >= share_min; }

  /// Errors: aborted if it does not. `of`: as in "the bandwidth of ...".
  caf::error check(const char* of, size_t feature) const;

private:
  static constexpr double share_min = 0.05;

  double largest_share(size_t feature) const;

  const linear_fit& fit_;
  std::span<const observation> observations_;
};

} // namespace ringmaster
