#pragma once

#include "runtime/configuration/options.hpp"
#include "runtime/schedule/collective.hpp"
#include "runtime/selection/least_squares.hpp"

#include <caf/expected.hpp>

#include <string>
#include <vector>

namespace ringmaster {

/// How a group's blocks travel; or, in one process, as what a training's ranks ask for and wait for.
enum class transport { process, network, training };

/// What a collective of float32 took; the root is rank 0.
struct cost_sample {
  transport by = transport::process;
  proto::CollectiveKind kind = proto::ALL_REDUCE;
  std::string algorithm;
  uint32_t ranks = 0;
  uint64_t bytes = 0;
  double seconds = 0;               ///< Of an operation; above 0.
  std::vector<uint32_t> hosts = {}; ///< On the network: where ranks lie, as `plan_request` has it.
};

struct tuned_costs {
  options values;                    ///< Those given, with the fitted [costs].
  linear_fit walked, joint, network; ///< Residuals over the samples that each was fitted to.
  std::vector<std::string> unseen;   ///< Keys that the samples do not tell, and that are as given.
};

/// The constants under which the samples are best explained; those of a way that no sample went stay. `cores` are those
/// that the ranks of a process share. Errors: aborted where the samples do not tell what bytes take (seen_rates.hpp);
/// as of `plan`.
caf::expected<tuned_costs> fit_costs(const std::vector<cost_sample>& samples, const options& known, uint32_t cores);

/// What the constants in `values` make of the sample, in seconds. Errors: as of `plan`.
caf::expected<double> estimate_of(const cost_sample& x, const options& values, uint32_t cores);

/// The section [costs], with what each key is for, and `remark` as a comment at its head.
std::string costs_section(options values, const std::string& remark);

} // namespace ringmaster
