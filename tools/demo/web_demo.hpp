#pragma once

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace ringmaster {

/// Options of `ringmaster demo --web`.
struct web_demo_options {
  uint16_t port = 8080; ///< Of the page. In use: any free one.
};

/// Replaces this process by caf-run with a cluster of two nodes, which runs `ringmaster demo` with these arguments
/// again. Returns only if that fails. Errors: io_error.
caf::error start_cluster_around(const std::vector<std::string>& arguments);

/// Shows the cluster of the coordinator at `where`, HOST:PORT, in a browser: starts ringmaster-gateway, all-reduces
/// that never end and a training, and prints the page's address. Runs until a signal arrives, then stops all of them.
/// Called before anything else starts a thread. Errors: io_error where a program is missing or does not start.
caf::expected<int> run_web_demo(const std::string& where, const web_demo_options& options);

} // namespace ringmaster
