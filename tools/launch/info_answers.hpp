#pragma once

#include <optional>
#include <set>
#include <string>

namespace ringmaster::launch {

// Reads the JSON of `ringmaster info`. Output that is not JSON or lacks a field counts as no answer.

/// The missing nodes, from a failed `info --nodes A,B`.
std::set<std::string> missing_nodes_in(const std::string& output);

struct reported_loss {
  std::string text; ///< "devices 0x3 0x4 of communicator 1 (epoch 2 on 6 ranks)"
  bool has_ranks = false;
};
/// The answer of `info --gone A`.
std::optional<reported_loss> loss_in(const std::string& output);

} // namespace ringmaster::launch
