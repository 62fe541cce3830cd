#pragma once

#include <caf/expected.hpp>

#include <string>

namespace ringmaster::launch {

/// The path of the program `name`: unchanged if it has a slash, else the first executable file of that name in the
/// directories of `search_path` (separated by colons) and in `last_directory`. Errors: invalid_argument for an unknown
/// program, io_error for one that is not executable.
caf::expected<std::string> find_program(const std::string& name, const std::string& search_path,
                                        const std::string& last_directory);

} // namespace ringmaster::launch
