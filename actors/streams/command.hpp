#pragma once

#include "messages/interfaces.hpp"

#include <string>

namespace ringmaster {

class collective_command;
class stream_state;

/// One entry of a stream's queue. Only the command at the head runs; it is told what arrives, and ends by calling
/// `stream.done()`, after which it must touch nothing: it is gone.
class command {
public:
  virtual ~command() = default;

  /// The word for it in the journal: "copy_in", "send", "collective", ...
  virtual const char* kind() const = 0;

  /// It has come to the head.
  virtual void begin(stream_state& stream) = 0;
  /// It asked to be called again.
  virtual void resume(stream_state&) {}
  /// A block for it has been offered, taken, refused, or has arrived in part.
  virtual void on_offer(stream_state&, const offer&) {}
  virtual void on_taken(stream_state&, const taken&) {}
  virtual void on_refused(stream_state&, const refused&) {}
  virtual void on_chunk(stream_state&, const chunk&) {}
  /// The other end of a transfer will not play its part. Told to every command, before it begins, too; the head hears
  /// of it by `on_refused`.
  virtual void forewarn(stream_state&, const refused&) {}
  /// A record of an event of this device is made. Told to every command, before it begins, too.
  virtual void on_recorded(stream_state&, event_id /*event*/, uint64_t /*record*/) {}
  /// Its limit has passed.
  virtual void on_limit(stream_state&) {}

  /// Whether the block `key` is for it.
  virtual bool expects(const transfer_key&) const { return false; }

  /// Itself, if it is a collective: asked so often that a cast would show.
  virtual collective_command* as_collective() { return nullptr; }
  const collective_command* as_collective() const { return const_cast<command*>(this)->as_collective(); }

  /// Given by the stream when it is queued: tells it from all others.
  uint64_t number = 0;
};

} // namespace ringmaster
