#pragma once

#include "messages/interfaces.hpp"

#include <cstdint>
#include <utility>

namespace ringmaster {

class collective_command;
class stream_state;

/// What a command's method leaves behind: the command goes on, or it has ended. Then the stream removes it after the
/// method has returned, and starts the next one.
struct [[nodiscard]] command_outcome {
  bool has_ended = false;
  bool is_journaled = false; ///< A record says how it ended.
  uint64_t bytes = 0;
  caf::error error;

  static command_outcome goes_on() { return {}; }
  static command_outcome ended(uint64_t bytes, caf::error error = {}) { return {true, true, bytes, std::move(error)}; }
  /// Its end is recorded elsewhere, or is not worth a record.
  static command_outcome ended_without_record() { return {true, false, 0, {}}; }
};

/// One entry of a stream's queue. Only the command at the head runs.
class command {
public:
  virtual ~command() = default;

  /// The word for it in the journal: "copy_in", "send", "collective", ...
  virtual const char* kind() const = 0;

  /// It has come to the head.
  virtual command_outcome begin(stream_state& stream) = 0;
  /// It has called `stream.resume_later`.
  virtual command_outcome resume(stream_state&) { return command_outcome::goes_on(); }
  /// A block for it has been offered, taken, refused, or has arrived in part.
  virtual command_outcome on_offer(stream_state&, const offer&) { return command_outcome::goes_on(); }
  virtual command_outcome on_taken(stream_state&, const taken&) { return command_outcome::goes_on(); }
  virtual command_outcome on_refused(stream_state&, const refused&) { return command_outcome::goes_on(); }
  virtual command_outcome on_chunk(stream_state&, const chunk&) { return command_outcome::goes_on(); }
  /// The other end of a transfer refuses it. Called for every command, also before it starts; the head then gets
  /// `on_refused`.
  virtual void forewarn(stream_state&, const refused&) {}
  /// A record of an event of this device is made. Called for every command, also before it starts. Only the head may
  /// end by it.
  virtual command_outcome on_recorded(stream_state&, event_id /*event*/, uint64_t /*record*/) {
    return command_outcome::goes_on();
  }
  /// Its limit has passed.
  virtual command_outcome on_limit(stream_state&) { return command_outcome::goes_on(); }

  /// Whether the block `key` is for it.
  virtual bool expects(const transfer_key&) const { return false; }

  /// Itself, if it is a collective. Called too often for a dynamic_cast.
  virtual collective_command* as_collective() { return nullptr; }
  const collective_command* as_collective() const { return const_cast<command*>(this)->as_collective(); }

  /// Given by the stream when it is queued, each number once.
  uint64_t number = 0;
};

} // namespace ringmaster
