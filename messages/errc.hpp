#pragma once

#include <ringmaster/errors.hpp>

#include <caf/error.hpp>
#include <caf/make_message.hpp> // CAF_ERROR_CODE_ENUM expands to make_message

#include <cstdint>
#include <string>
#include <string_view>

namespace ringmaster {

/// What a message carries beside a sentence: the code of our errors, what comes nearest for those of CAF, 0 for none.
uint32_t wire_code(const caf::error& err);

/// The error that a message carries. A code that this version does not know, and a sentence without one, is `refused`.
caf::error error_from_wire(uint32_t code, const std::string& text);

/// An error of ours with its sentence: what happened, to which rank and device, what would be right.
caf::error make_error(errc code, std::string text);
/// The two that most readers of arguments and files make: `errc::invalid_argument` and `errc::corrupt`.
caf::error invalid(std::string text);
caf::error malformed(std::string text);

/// The same error with the subject before its message: "subject: message". An error of CAF gets the code that
/// `wire_code` gives it. No error stays none.
caf::error with_context(const std::string& subject, const caf::error& err);

/// An error whose cause is a field of its own. Its message is "what: cause".
caf::error with_cause(errc code, std::string what, std::string cause);

/// The cause of an error that `with_cause` made; the whole message of any other.
std::string cause_of(const caf::error& err);

/// The sentence of one of our errors, or CAF's rendering of any other.
std::string render(const caf::error& err);

/// The code, or `errc::ok` where the error is not ours.
errc code_of(const caf::error& err);

} // namespace ringmaster

CAF_ERROR_CODE_ENUM(ringmaster::errc, "ringmaster")
