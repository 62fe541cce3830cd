#pragma once

#include "planner/failures/failure_findings.hpp"
#include "planner/failures/failure_question.hpp"
#include "runtime/text/json_field.hpp"
#include "tools/console/page_format.hpp"
#include "tools/options/option_table.hpp"

#include <optional>
#include <string>

namespace ringmaster {

/// The best way to recover, for example "restart, 16 spares: wait".
std::string best_way_text(const training::failure_findings& found);

std::string report_of(const training::failure_findings& found, const page_format& page = {});
/// One object, where a value is expected.
json_value json_of(const training::failure_findings& found);

/// How often hosts fail and what then happens: --gpu-mttf, without which nothing fails, --checkpoint-write, --restart,
/// --detection, --repair, --join, --spares, --shrink, --checkpoint-every, --run, --plays, --life-shape.
struct failure_options {
  std::optional<double> gpu_mttf_s, checkpoint_write_s, restart_s, detection_s, repair_s, join_s, interval_s, run_s,
    life_shape;
  std::optional<uint32_t> spares, plays;
  bool shrink = false;

  void add_to(option_table& table);
  /// The first of these options that was given, or nothing.
  std::string given() const;
  /// Whether failures are asked for.
  explicit operator bool() const noexcept { return gpu_mttf_s.has_value(); }
  /// Errors: invalid_argument, where the options do not go together, or no job has such times.
  caf::error check() const;
  /// `job` has the GPUs, GPUs per host, copies, sharding and a step's time; the options set the rest. Errors:
  /// invalid_argument.
  caf::expected<training::failure_question> question(training::failure_question job) const;
};

} // namespace ringmaster
