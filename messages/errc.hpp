#pragma once

#include <caf/error.hpp>
#include <caf/make_message.hpp> // CAF_ERROR_CODE_ENUM expands to make_message

#include <cstdint>
#include <string>

namespace ringmaster {

/// Everything that can go wrong in operation. Codes travel on the wire: only append.
enum class errc : uint8_t {
  ok = 0,               ///< Reserved by CAF for "no error".
  invalid_argument,     ///< The request makes no sense, whatever the state.
  out_of_range,         ///< An address range is not within the device's memory.
  out_of_memory,        ///< The allocator has no block that large.
  unknown_device,       ///< Never joined, or has died or left.
  unknown_communicator, ///< Never existed, or was destroyed.
  unknown_stream,       ///< Never created, or its result was asked for too late.
  too_few_devices,      ///< A communicator wants more devices than are free.
  group_misuse,         ///< GroupStart within a group, or GroupEnd outside of one.
  size_mismatch,        ///< The two ends of a transfer name different sizes.
  timed_out,            ///< A limit passed; the text says what was waited for.
  device_lost,          ///< A device died, hung or was cut off.
  killed_on_request,    ///< Fault injection ended this actor.
  aborted,              ///< The communicator was aborted or destroyed.
  io_error,             ///< The operating system refused.
  corrupt,              ///< Stored bytes are not what was written.
  wrong_version,        ///< Stored in another format, or spoken in another protocol, than this version's.
  in_use,               ///< Belongs to a living process.
  invalid_config,       ///< A configuration value is not allowed.
  gave_up,              ///< A supervisor restarted a child too often.
  refused,              ///< Another process said no; its sentence says why.
  too_large,            ///< More than any state would allow: over a size's limit, which the text names.
  too_many,             ///< As many are alive or under way as a limit allows, which the text names; wait, or end some.
  suspected,            ///< Ended by the coordinator, because it was silent or late.
  unreachable           ///< Nobody listens there, or the way is blocked; the text names both ends.
};

/// What a message carries beside a sentence: the code of our errors, what comes nearest for those of CAF, 0 for none.
uint32_t wire_code(const caf::error& err);

/// The error that a message carries. A code that this version does not know, and a sentence without one, is `refused`.
caf::error error_from_wire(uint32_t code, const std::string& text);

std::string to_string(errc code);

/// An error of ours with its sentence: what happened, to which rank and device, what would be right.
caf::error make_error(errc code, std::string text);
/// The two that most readers of arguments and files make: `errc::invalid_argument` and `errc::corrupt`.
caf::error invalid(std::string text);
caf::error malformed(std::string text);

/// The sentence of one of our errors, or CAF's rendering of any other.
std::string render(const caf::error& err);

/// The code, or `errc::ok` where the error is not ours.
errc code_of(const caf::error& err);

} // namespace ringmaster

CAF_ERROR_CODE_ENUM(ringmaster::errc, "ringmaster")
