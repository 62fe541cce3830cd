#pragma once

#include <caf/error.hpp>

#include <string>

namespace ringmaster {

/// Writes the text to the file, in place of what was there. `what` names it in errors: "the trace". Errors: io_error.
caf::error write_output_file(const std::string& file, const std::string& text, const char* what);

/// The same, but whoever opens the file meanwhile finds the old text or the new one, whole: it is written beside the
/// file, which it then replaces. The file's permissions stay; a symbolic link does, too.
caf::error replace_file(const std::string& file, const std::string& text, const char* what);

/// Whether it could be written now: before much work is done for it. Leaves what is there as it is. Errors: io_error.
caf::error try_output_file(const std::string& file, const char* what);

} // namespace ringmaster
