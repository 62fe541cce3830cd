#pragma once

#include <caf/error.hpp>

#include <initializer_list>
#include <string>
#include <string_view>

namespace ringmaster {

/// Writes the text to the file. What was there stays whole until the new text is: that is written beside it,
/// "FILE.new", and takes its place, with its permissions; a symbolic link stays one. What cannot be written leaves
/// nothing behind. `what` names it in errors: "the trace". Errors: io_error.
caf::error write_output_file(const std::string& file, const std::string& text, const char* what);

/// Whether it could be written now: before much work is done for it. Leaves what is there as it is. Errors: io_error.
caf::error try_output_file(const std::string& file, const char* what);

/// What an option was told to write to; empty: it was not.
struct output_option {
  std::string_view option;
  std::string_view file;
};
/// Whether each has a file of its own. Errors: invalid_argument, with both options.
caf::error check_outputs_differ(std::initializer_list<output_option> all);

} // namespace ringmaster
