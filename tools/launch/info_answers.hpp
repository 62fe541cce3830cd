#pragma once

#include <optional>
#include <set>
#include <string>

namespace ringmaster::launch {

// What `ringmaster info` answers with --json, as far as caf-run needs it. Output that is not JSON, or lacks a field,
// counts as no answer.

/// Of `info --nodes A,B` that has failed: the names of the nodes that are missing.
std::set<std::string> missing_nodes_in(const std::string& output);

struct reported_loss {
  std::string text; ///< "devices 0x3 0x4 of communicator 1 (epoch 2 on 6 ranks)"
  bool has_ranks = false;
};
/// Of `info --gone A`.
std::optional<reported_loss> loss_in(const std::string& output);

} // namespace ringmaster::launch
