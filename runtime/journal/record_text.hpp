#pragma once

#include "messages/ids.hpp"
#include "messages/journal.pb.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace ringmaster {

struct record_text_options {
  std::optional<uint64_t> relative_to_ns; ///< Seconds since then ("+1.250 s") in place of the time of day.
  std::chrono::seconds utc_offset{0};     ///< Of the clock on the reader's wall.
  /// Of an operation's end: from the first rank's beginning to the last one's end. The rest of the time it has waited,
  /// for the operations before it or for ranks that came late.
  std::optional<uint64_t> ranks_took_ns;
};

/// One line for people, without its end: "14:03:21.250  communicator 7 operation 3: ...". Device ids are hexadecimal,
/// sizes and durations carry units, and control characters in foreign text are escaped.
std::string text_of(const proto::Record& record, const record_text_options& opts = {});

/// A training run as people read it. Runs are numbered by the nanosecond of their start; their short name is six
/// hexadecimal digits made of that, and a small number stands for itself.
std::string training_name(uint64_t run);

/// A stream id as people read it: its number on its device (the device's id stands in the upper 24 bits). 1 is the
/// default stream.
constexpr uint64_t number_on_device(stream_id id) {
  return id.value & ((uint64_t{1} << 40) - 1);
}

/// "2026-03-01": the day of the record, for a line of its own where it changes.
std::string day_of(const proto::Record& record, std::chrono::seconds utc_offset);

/// How a line should look.
enum class tone : uint8_t { plain, good, warning, bad };
tone tone_of(const proto::Record& record);

/// One JSON object in one line, without its end: protobuf's own JSON with the field names of messages/journal.proto,
/// {"time_ns":"1767225600000000000","device_died":{"device_id":"3","cause":"killed","noticed_by":"monitor"}}.
/// The second key names the event. 64-bit numbers are strings, as JSON numbers lose digits above 2^53; enums are their
/// names; fields of the event are there even where they are zero or empty.
std::string json_of(const proto::Record& record);

} // namespace ringmaster
