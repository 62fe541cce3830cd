#pragma once

#include <caf/error.hpp>

#include <string>

namespace ringmaster {

/// Writes the file by which a program tells its launcher that it listens, and where. It is renamed when it is complete,
/// so a reader never sees a part of it. Errors: io_error.
caf::error write_ready_file(const std::string& path, const std::string& text);

} // namespace ringmaster
