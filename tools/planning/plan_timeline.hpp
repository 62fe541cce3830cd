#pragma once

#include "planner/search/plan_outcome.hpp"
#include "tools/options/option_table.hpp"

#include <caf/error.hpp>

#include <functional>
#include <optional>
#include <string>

namespace ringmaster {

/// Files of the best plan's step, as it is simulated: --timeline, --trace, --trace-limit.
struct plan_timeline_options {
  std::string picture, trace;
  std::optional<uint64_t> trace_bytes_max;

  void add_to(option_table& table);
  bool any() const { return !picture.empty() || !trace.empty(); }
  /// The first of these options that was given, or nothing.
  std::string given() const;
  caf::error check() const;
  /// Of an outcome that has a plan, which is simulated once more, with its events. `watch` is told which part is done,
  /// and ends it by answering false. Errors: a plan that is not simulated, or too large to be shown; a file that cannot
  /// be written.
  caf::error write(const training::plan_outcome& x, const std::function<bool(double)>& watch) const;

private:
  caf::error draw(const training::plan_question& asked, const training::plan_simulation& run,
                  const training::training_outcome& found) const;
  caf::error write_trace(const training::plan_simulation& run, const training::training_outcome& found) const;
};

} // namespace ringmaster
