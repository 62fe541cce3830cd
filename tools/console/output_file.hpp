#pragma once

#include <caf/error.hpp>

#include <initializer_list>
#include <string>
#include <string_view>

namespace ringmaster {

/// Writes the text to "FILE.new" and renames it, so that the file always has complete contents. Permissions and
/// symbolic links are kept. After an error there is no new file. `what`: for errors, "the trace". Errors: io_error.
caf::error write_output_file(const std::string& file, const std::string& text, const char* what);

/// Checks before a long computation whether the file can be written. Does not change it. Errors: io_error.
caf::error try_output_file(const std::string& file, const char* what);

/// The file of an option; empty if the option is not given.
struct output_option {
  std::string_view option;
  std::string_view file;
};
/// Checks that no two options have the same file. Errors: invalid_argument with both options.
caf::error check_outputs_differ(std::initializer_list<output_option> all);

} // namespace ringmaster
