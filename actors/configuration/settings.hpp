#pragma once

#include "actors/coordination/coordinator.hpp"
#include "actors/hosts/node.hpp"
#include "actors/links/link_hub.hpp"
#include "runtime/configuration/options.hpp"
#include "runtime/memory/memory_directory.hpp"
#include "runtime/selection/process_costs.hpp"

#include <filesystem>
#include <functional>
#include <memory>

namespace ringmaster {

// What the actors start with, from the configuration. Handles are left empty.

device_options device_settings(const options& opts, const std::filesystem::path& memory_dir);
coordinator_options coordinator_settings(const options& opts);
link_options link_settings(const options& opts);
node_options node_settings(const options& opts, const std::filesystem::path& memory_dir);

/// Sees to it that it is there, and logs where it was not: `device_options::keep_memory_dir`.
std::function<caf::error()> keeper_of(std::shared_ptr<memory_directory> memory);

/// What operations take: between processes, and in one process with that many cores.
cost_constants network_costs(const options& opts);
process_constants process_costs(const options& opts, uint32_t cores);

/// What the memory files of this process may grow to, scratch included.
uint64_t memory_files_bytes(const options& opts);
/// The same of one device.
uint64_t memory_file_bytes(const options& opts);

/// "shrink", "replace", "abort"; the options have been validated.
proto::FailurePolicy parse_policy(const std::string& text);

} // namespace ringmaster
