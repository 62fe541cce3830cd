#pragma once

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace ringmaster {

// Files that only their owner may read: secrets and keys. `what` names one in errors: "the secret file".

/// Errors: io_error, where it is missing or cannot be read; invalid_argument, where it is no regular file, where its
/// group or other users may read or write it, or where it has more than `bytes_max`.
caf::expected<std::string> read_private_file(const std::filesystem::path& file, const std::string& what,
                                             size_t bytes_max);

/// Writes a new file (0600), which appears whole or not at all. Errors: in_use where there is a file of that name,
/// which stays as it is; io_error; no_space.
caf::error create_private_file(const std::filesystem::path& file, const std::string& what, std::string_view bytes);
/// The same, but a file of that name is replaced.
caf::error replace_private_file(const std::filesystem::path& file, const std::string& what, std::string_view bytes);

} // namespace ringmaster
