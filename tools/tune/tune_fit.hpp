#pragma once

#include "runtime/configuration/options.hpp"
#include "runtime/schedule/collective.hpp"
#include "runtime/selection/least_squares.hpp"

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace ringmaster {

/// How a group's blocks are moved; `training`: in one process, with the waiting of a training's ranks.
enum class transport { process, network, training };

/// A measured collective of float32; the root is rank 0.
struct cost_sample {
  transport by = transport::process;
  proto::CollectiveKind kind = proto::ALL_REDUCE;
  std::string algorithm;
  uint32_t ranks = 0;
  uint64_t bytes = 0;
  double seconds = 0;               ///< Of an operation; above 0.
  std::vector<uint32_t> hosts = {}; ///< On the network: the ranks' hosts, as in `plan_request`.
};

struct tuned_costs {
  options values;                    ///< The given ones, with the fitted [costs].
  linear_fit walked, joint, network; ///< With residuals over their samples.
  std::vector<std::string> unseen;   ///< Keys that the samples do not determine; they keep their values.
};

/// The constants that explain the samples best; those without samples keep their values. `cores`: shared by the ranks
/// of a process. Errors: aborted if the samples do not determine a bandwidth; as of `plan`.
caf::expected<tuned_costs> fit_costs(const std::vector<cost_sample>& samples, const options& known, uint32_t cores);

/// The estimate for the sample by the constants in `values`, in seconds. Errors: as of `plan`.
caf::expected<double> estimate_of(const cost_sample& x, const options& values, uint32_t cores);

/// The section [costs], with a comment for each key and `remark` at its head.
std::string costs_section(options values, const std::string& remark);

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
