#pragma once

#include "runtime/text/json_field.hpp"
#include "tools/console/page_format.hpp"
#include "training/pictures/train_picture.hpp"
#include "training/simulated/simulator.hpp"

#include <caf/error.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

/// For people: the whole, and a line a rank (of many ranks the first and the last ones).
std::string report_of(const train_run& x, const training::training_outcome& found);

/// One object: time_s, end_s, peak_memory, peak_memory_unit, room, in that unit, and fits (null where a rank may hold
/// any amount), peak_rank, mfu_percent (null where the model has none), mfu_counts ("causal" or "full" attention, or
/// null), bubble_fraction, communication_fraction, and a list of ranks. Times are in the cost model's unit,
/// "time_unit".
json_value json_of(const train_run& x, const training::training_outcome& found);

/// Runs of several strategies side by side, all in one cost model's units.
class train_comparison {
public:
  void add(const train_run& x, const training::training_outcome& found);
  /// The strategy was run without an option that it does not take.
  void left_out(std::string_view strategy, const std::string& option);
  /// A strategy that cannot run, and why.
  void add(std::string_view strategy, const caf::error& problem);

  bool any() const noexcept { return !runs_.empty(); }
  /// A table in Markdown with units in its heads. Strategies that fit into a rank's memory come first, the fastest of
  /// them at the top; those that cannot run are listed below the table, with the reason. Lines that are too long leave
  /// out columns, in this order: end, bubble, communication.
  std::string text(const page_format& page) const;

private:
  struct run {
    std::string_view strategy;
    double time = 0, end = 0, memory = 0;
    double mfu_percent = -1, bubble = 0, communication = 0; ///< The last two as parts of the whole time.
    bool fits = true;
  };
  using line = std::vector<std::string>;

  std::vector<line> lines() const;
  std::string table_text(const page_format& page) const;

  std::vector<run> runs_;
  std::string time_unit_, memory_unit_, mfu_counts_;
  uint64_t room_ = UINT64_MAX;
  std::vector<std::string> problems_;
  std::map<std::string, std::vector<std::string_view>> left_out_; ///< By option.
};

} // namespace ringmaster
