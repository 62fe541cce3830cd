#pragma once

#include <ringmaster/errors.hpp>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace RINGMASTER_API {

/// One record of the operation log: an operation enqueued, started or ended, a node or device that joined or left, an
/// epoch, a fault.
struct journal_record {
  std::chrono::system_clock::time_point time{}; ///< Wall clock of the process that wrote it.
  std::string event{}; ///< Its type, as messages/journal.proto names it: "operation_ended".
  std::string text{};  ///< One line for people, as `ringmaster log` prints it.
  std::string json{};  ///< All fields, as `ringmaster log --json` prints them.
};

/// Reads the latest records of a journal directory, oldest first, also while its cluster runs or after that was killed.
/// Errors: io_error, corrupt, wrong_version. Thread-safe.
expected<std::vector<journal_record>> read_journal(const std::filesystem::path& directory, uint32_t records_max);

} // namespace RINGMASTER_API
