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
  std::chrono::seconds utc_offset{0};     ///< Of the reader's local time.
  /// For the end of an operation: from the first rank's start to the last one's end. The rest of its time it waited for
  /// earlier operations or for late ranks.
  std::optional<uint64_t> ranks_took_ns;
};

/// One line of text without a line feed: "14:03:21.250  communicator 7 operation 3: ...". Device ids are hexadecimal,
/// sizes and durations have units, and control characters in text of others are escaped.
std::string text_of(const proto::Record& record, const record_text_options& opts = {});

/// The same without the time.
std::string sentence_of(const proto::Record& record);

/// "14:03:21.250": the time of the record.
std::string time_of(const proto::Record& record, std::chrono::seconds utc_offset);

/// What was called: "ring all_reduce of 512 float64, sum, 4 KiB a rank".
std::string call_text(const proto::OperationEnqueued& x);

/// The short name of a training run. Runs are numbered by the nanosecond of their start; the name is six hexadecimal
/// digits made of it. A small number is its own name.
std::string training_name(uint64_t run);

/// A stream's number on its device: its id without the device's id in the upper 24 bits. 1 is the default stream.
constexpr uint64_t number_on_device(stream_id id) {
  return id.value & ((uint64_t{1} << 40) - 1);
}

/// "2026-03-01": the day of the record. The log has a line for each new day.
std::string day_of(const proto::Record& record, std::chrono::seconds utc_offset);

/// The color of a line.
enum class tone : uint8_t { plain, good, warning, bad };
tone tone_of(const proto::Record& record);

/// One JSON object on one line without a line feed: protobuf's JSON with the field names of messages/journal.proto,
/// {"time_ns":"1767225600000000000","device_died":{"device_id":"3","cause":"killed","noticed_by":"monitor"}}.
/// The second key names the event. 64-bit numbers are strings, since JSON numbers lose digits above 2^53; enums are
/// names; fields of the event are present even if they are zero or empty.
std::string json_of(const proto::Record& record);

} // namespace ringmaster
