#pragma once

#include <caf/expected.hpp>

#include <string>

namespace ringmaster::launch {

/// Where the program `name` is: as it stands if it has a slash, else the first executable file of that name in the
/// directories of `search_path` (separated by colons), else in `last_directory`. The errors are unknown program
/// (errc::invalid_argument) and not executable (errc::io_error).
caf::expected<std::string> find_program(const std::string& name, const std::string& search_path,
                                        const std::string& last_directory);

} // namespace ringmaster::launch
