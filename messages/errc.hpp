#pragma once

#include <caf/error.hpp>
#include <caf/make_message.hpp> // CAF_ERROR_CODE_ENUM expands to make_message

#include <cstdint>
#include <string>
#include <string_view>

namespace ringmaster {

/// Every error of operation: code, name and meaning. Codes travel on the wire: only append. Enumerators, names,
/// meanings and tests are generated from this table.
#define RINGMASTER_ERRORS(X)                                                                                           \
  X(ok, "no error; reserved by CAF")                                                                                   \
  X(invalid_argument, "the request makes no sense, whatever the state")                                                \
  X(out_of_range, "an address range is not within the device's memory")                                                \
  X(out_of_memory, "the allocator has no block of that size")                                                          \
  X(unknown_device, "the device never joined, or it has died or left")                                                 \
  X(unknown_communicator, "the communicator never existed, or was destroyed")                                          \
  X(unknown_stream, "the stream was never created, or its result was requested too late")                              \
  X(too_few_devices, "a communicator wants more devices than are free")                                                \
  X(group_misuse, "GroupStart within a group, or GroupEnd outside of one")                                             \
  X(size_mismatch, "the two ends of a transfer give different sizes")                                                  \
  X(timed_out, "a limit passed; the message says what was waited for")                                                 \
  X(device_lost, "a device died, hung or was cut off")                                                                 \
  X(killed_on_request, "fault injection ended this actor")                                                             \
  X(aborted, "the communicator was aborted or destroyed")                                                              \
  X(io_error, "the operating system refused")                                                                          \
  X(corrupt, "stored bytes are not what was written")                                                                  \
  X(wrong_version, "stored in another format, or sent in another protocol, than this version's")                       \
  X(in_use, "it belongs to a running process")                                                                         \
  X(invalid_config, "a configuration value is not allowed")                                                            \
  X(gave_up, "a supervisor restarted a child too often")                                                               \
  X(refused, "another process refused; its message says why")                                                          \
  X(too_large, "over the limit of a size, which the message names")                                                    \
  X(too_many, "over the limit of a number, which the message names; wait, or end some")                                \
  X(suspected, "ended by the coordinator, because it was silent or late")                                              \
  X(unreachable, "no process listens there, or the network is cut; the message names both ends")                       \
  X(not_ringmaster, "what answers there is no process of Ringmaster")                                                  \
  X(no_space, "the disk, a quota or the limit on file sizes has no room")

enum class errc : uint8_t {
#define RINGMASTER_ENUMERATOR(name, meaning) name,
  RINGMASTER_ERRORS(RINGMASTER_ENUMERATOR)
#undef RINGMASTER_ENUMERATOR
};

/// Number of codes, `errc::ok` included.
constexpr uint8_t errc_count = 0
#define RINGMASTER_ONE(name, meaning) +1
  RINGMASTER_ERRORS(RINGMASTER_ONE)
#undef RINGMASTER_ONE
  ;

/// What a message carries beside a sentence: the code of our errors, what comes nearest for those of CAF, 0 for none.
uint32_t wire_code(const caf::error& err);

/// The error that a message carries. A code that this version does not know, and a sentence without one, is `refused`.
caf::error error_from_wire(uint32_t code, const std::string& text);

/// The name, as in the table; "errc_N" for a number that is not in it.
std::string to_string(errc code);

/// The meaning, as in the table; empty for a number that is not in it.
std::string_view meaning_of(errc code);

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
