#pragma once

#include "actors/calls/wall_clock.hpp"
#include "actors/streams/collective_dispatch.hpp"
#include "actors/streams/command.hpp"
#include "actors/streams/ended_operations.hpp"
#include "actors/streams/fault_gate.hpp"
#include "actors/streams/known_epochs.hpp"
#include "runtime/memory/device_memory.hpp"
#include "runtime/memory/memory_neighbours.hpp"

#include <caf/timespan.hpp>
#include <caf/typed_response_promise.hpp>

#include <deque>
#include <functional>
#include <map>
#include <memory>

namespace ringmaster {

class link_exposure;
class link_hub;
class route;
struct block_sink;

/// What the streams of a device have in common.
struct stream_options {
  caf::timespan transfer_limit = std::chrono::seconds{5}; ///< How long a send or receive waits for its other end.
  caf::timespan wait_limit = std::chrono::seconds{30};    ///< How long an event wait waits.
  uint64_t slice_bytes = 1u << 20; ///< A stream gives way to its mailbox after this many bytes. A multiple of 8.
  uint64_t chunk_bytes = 1u << 20; ///< Of one message where bytes travel in messages. A multiple of 8.
  uint32_t credits = 4;            ///< Chunks in flight to one receiver.
  uint64_t eager_bytes = 0; ///< Blocks up to this size travel within their offer, where their memory cannot be read.
  uint32_t commands_max = 4096;   ///< Queued on one stream.
  uint32_t offers_max = 1u << 16; ///< Kept for commands that are not at the head yet.
  std::string route = "auto";     ///< That blocks take: a name of `routes`, or "auto".
  /// Other processes' memories on this host; null: they cannot be read.
  std::shared_ptr<memory_neighbours> neighbours;
  std::shared_ptr<link_hub> link; ///< The bulk connections of this process; null: it has none.
  wall_clock clock;
  journal_actor journal; ///< May be invalid.

  /// Blocks come by this route; drops what only other routes need.
  void force(const std::string& use);
};

/// A block on offer, which is read from this memory.
struct offered_block {
  device_window window;
  std::shared_ptr<link_exposure> link; ///< While other processes may fetch it; null: none does.
};

/// The state of a STREAM, and what its commands may do. The queue's head is the only command that runs. It stays in the
/// queue until the stream acts on a `command_outcome` that says it has ended.
class stream_state {
public:
  static inline const char* name = "stream";

  stream_actor::pointer self = nullptr;
  stream_options options;
  stream_id id;
  bool ends_when_idle = false; ///< The stream of one transfer.
  std::shared_ptr<device_memory> memory;
  device_actor device; ///< May be invalid in tests.

  // -- the queue --

  void enqueue(std::unique_ptr<command> cmd);
  bool full() const { return queue.size() >= options.commands_max; }
  caf::error queue_full() const; ///< For those that it refuses then.
  /// What a method of the head has returned: if the head has ended, it is removed, and the next command starts.
  void act_on(const command_outcome& x);
  /// Whether the memory is damaged: then the stream ends, and the device with it.
  bool ends_by_damage();
  /// Removes commands that will not run.
  void remove_if(const std::function<bool(const command&)>& condition);
  /// Calls the head's `resume` after everything that is in the mailbox now, or after `delay`.
  void resume_later(caf::timespan delay = caf::timespan{0});
  void on_resume(uint64_t call);
  /// Calls the head's `on_limit` if it has not ended by then.
  void limit_head(caf::timespan limit);
  void on_limit(uint64_t command_number);
  /// Answers when all commands queued so far have ended, or when `limit` (0: the wait limit) passes.
  void synchronize(caf::timespan limit, caf::typed_response_promise<proto::StreamSynchronizeResponse> promise);
  /// Calls a method of the head, if it has started.
  void head_event(const std::function<command_outcome(command&)>& event);
  /// Calls a method of every command. Only the head may end by it.
  void queue_event(const std::function<command_outcome(command&)>& event);

  // -- faults --

  /// The stream suffers the fault. Returns whether the gate is closed: for good, or until it calls `go_on`.
  bool suffer(
    const proto::FaultRequest& x, const std::string& where, const std::function<void()>& go_on = [] {});

  // -- blocks that are offered --

  enum class offering { lies, travels };
  /// Offers a block to `receiver`, an actor of the device `peer`: the block stays in this memory and the stream answers
  /// pulls until `retract`, or it travels within the offer, and nothing is asked for later. Then the receiver answers
  /// only if that is `awaited`. `reduction`: what it does with the block; none: it knows.
  offering offer_block(const device_handle& peer, const caf::strong_actor_ptr& receiver, const transfer_key& key,
                       uint64_t address, uint64_t bytes, bool awaited,
                       const caf::optional<block_reduction>& reduction = {});
  void retract(const transfer_key& key) { outgoing.erase(key); }
  /// Grows while a receiver reads what is offered.
  uint64_t reads_of(const transfer_key& key) const;
  /// How the block that is offered comes here. Errors: unreachable, where the configured route does not go there.
  caf::expected<std::unique_ptr<route>> route_to(offer source, const block_sink& sink) const;
  /// An offer that came before its command was at the head; nullptr if none did.
  std::unique_ptr<offer> claim(const transfer_key& key);

  // -- epochs --

  /// Forgets the blocks of all older epochs.
  void enter_epoch(communicator_id communicator, epoch_number epoch);
  /// The communicator has ended; later messages of it are stale.
  void forget(communicator_id communicator);

  std::chrono::steady_clock::time_point now() const { return self->clock().now(); }
  uint64_t unix_ns() const { return options.clock.unix_ns(now()); }
  void journal(proto::Record record);

  std::deque<std::unique_ptr<command>> queue;
  std::map<transfer_key, offer> incoming;
  std::map<transfer_key, offered_block> outgoing;
  known_epochs epochs;
  ended_operations ended_ops;
  fault_gate faults;
  collective_dispatch collectives{*this};
  std::map<communicator_id, proto::DeviceWork> work; ///< Of collectives, by communicator; see slow_devices.
  uint64_t pulls_served = 0;
  caf::error last_error; ///< Of the latest command that went to the journal; none if it worked.

private:
  /// Whether the receiver reads what we offer from our memory without a message.
  bool reads_memory(const device_handle& peer, const caf::strong_actor_ptr& receiver) const;
  void start_head();
  bool head_has_started() const { return !queue.empty() && started_ == queue.front()->number; }

  uint64_t commands_ = 0;
  uint64_t started_ = 0; ///< The number of the last command that has started.
  uint64_t head_started_ns_ = 0;
  uint64_t resumes_ = 0;
  uint64_t resume_pending_ = 0; ///< The number of the call that counts; 0: none. The head's, never an earlier one's.
  bool starting_ = false;       ///< The loop of `start_head` runs, further up the call stack.
};

/// Runs one device's commands in order. `memory` is the device's.
stream_actor::behavior_type stream(stream_actor::stateful_pointer<stream_state> self, stream_options options,
                                   stream_id id, std::shared_ptr<device_memory> memory, device_actor device,
                                   bool ends_when_idle);

} // namespace ringmaster
