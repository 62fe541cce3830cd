#pragma once

#include <caf/expected.hpp>

#include <string>

namespace ringmaster {

/// The text of a file that somebody wrote, of 16 MiB at most. Errors: io_error, with the path and what is wrong.
caf::expected<std::string> read_text_file(const std::string& path);

} // namespace ringmaster
