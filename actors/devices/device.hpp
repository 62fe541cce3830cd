#pragma once

#include "actors/devices/answered_calls.hpp"
#include "actors/streams/stream.hpp"
#include "messages/interfaces.hpp"

#include <caf/error.hpp>
#include <caf/timespan.hpp>

#include <filesystem>
#include <functional>
#include <map>
#include <set>

namespace ringmaster {

class device_state;

/// The one way by which faults get into a device: checks a FaultRequest, and has the device's streams killed, hung or
/// slowed down. Nothing else of the device knows of faults.
class device_faults {
public:
  explicit device_faults(device_state& device) : device_(device) {}

  /// Errors: invalid_argument; unknown_stream.
  caf::error inject(const proto::FaultRequest& x);

private:
  device_state& device_;
};

struct device_options {
  std::filesystem::path memory_dir; ///< Where the memory file goes.
  /// Makes sure that it exists before a file is made in it; thread-safe. Null: it always exists.
  std::function<caf::error()> keep_memory_dir{};
  uint64_t memory_bytes = 64u << 20;
  uint32_t streams = 2;          ///< The default stream and others.
  uint32_t streams_max = 1024;   ///< And as many transfers at once.
  uint32_t transfers_max = 4096; ///< Outcomes kept for GetStreamStatus, and offers that came early.
  node_id node;                  ///< That it is one of.
  device_id id;                  ///< 0: ask the coordinator ...
  device_id wanted_id;           ///< ... for this one, if it is free. 0: for any.
  caf::timespan join_limit = std::chrono::seconds{30}; ///< For its answer; then the device gives up.
  coordinator_actor coordinator;                       ///< May be invalid when `id` is given.
  relay_actor relay;                                   ///< Of its process; may be invalid.
  stream_options streams_options;
};

/// One transfer as this device sees it.
struct device_transfer {
  gpu_sim::GetStreamStatusResponse status;
  stream_actor runner;          ///< The stream that runs its command; invalid once it has ended.
  communicator_id communicator; ///< 0: the only one.
  device_id peer;
};

/// The other end of running transfers, monitored as long as there are any.
struct transfer_peer {
  caf::strong_actor_ptr device;
  uint64_t transfers = 0;
};

/// An event of this device that some stream has yet to record. A wait is for the latest record called before it.
struct device_event {
  uint64_t latest = 0;                                    ///< The number of the latest record.
  std::set<uint64_t> pending;                             ///< Records that no stream has come to yet; never empty.
  std::vector<std::pair<uint64_t, stream_actor>> waiters; ///< With the record they wait for.
};

/// The state of a DEVICE. A device and its streams are one failure domain: a stream that dies takes the device with it,
/// as a fault in a stream poisons a GPU's context, because the state of the memory is unknown.
class device_state {
public:
  static inline const char* name = "device";

  device_actor::pointer self = nullptr;
  answered_calls calls;
  uint64_t incarnation = 0; ///< Of the latest coordinator that has asked what it knows.
  device_options options;
  device_id id;
  std::shared_ptr<device_memory> memory;
  std::map<stream_id, stream_actor> streams;      ///< The first is the default stream.
  std::map<stream_id, device_transfer> transfers; ///< By transfer, which is a stream of its own.
  std::map<device_id, transfer_peer> peers;
  std::map<stream_id, offer> early;        ///< Offers of transfers whose receive has not been posted.
  std::map<event_id, device_event> events; ///< Those with pending records.
  std::map<communicator_id, membership> communicators;
  std::map<uint64_t, proto::ClientMemory>
    allocations; ///< Of clients, by address: a restarted coordinator asks for them.
  device_faults faults{*this};

  /// Removes the memory's file, so that no process maps it from now on; those that have mapped it may still read.
  ~device_state();
  /// Makes the memory, starts the streams, tells the coordinator.
  void start(device_id given);
  stream_actor add_stream(bool ends_when_idle, stream_id& made);

  /// The stream with this id, or the default one for 0. Errors: unknown_stream, naming those that exist.
  caf::expected<stream_actor> stream_of(stream_id stream) const;
  /// What to say before there is memory.
  caf::error not_joined() const;
  /// The device with `rank` in `communicator` (0: the only one). Errors: unknown_communicator, invalid_argument.
  caf::expected<std::pair<device_id, device_handle>> member(communicator_id communicator, uint32_t rank) const;

  gpu_sim::BeginSendResponse begin_send(const gpu_sim::BeginSendRequest& x);
  gpu_sim::BeginReceiveResponse begin_receive(const gpu_sim::BeginReceiveRequest& x);
  /// To the receive that waits for it, or kept until it is posted.
  void route_offer(const offer& x);
  /// The sender withdraws: its receive need not wait.
  void withdraw_offer(const refused& x);
  /// The device at the other end of transfers has died.
  void on_down(const caf::down_msg& x);
  void end_transfer(stream_id transfer, const gpu_sim::GetStreamStatusResponse& status);
  void members_changed(const membership& now);
  caf::result<proto::EventRecordResponse> record_event(const proto::EventRecordRequest& x);
  caf::result<proto::EventWaitResponse> wait_event(const proto::EventWaitRequest& x);
  void recorded(event_id event, uint64_t record);

private:
  /// Where a transfer's command goes: the stream asked for, or one of its own.
  caf::expected<stream_actor> runner_for(bool has_stream, stream_id stream, stream_id& own);
  stream_id next_stream_id();
  void start_transfer(stream_id transfer, stream_actor runner, communicator_id communicator,
                      const std::pair<device_id, device_handle>& peer);
  /// Ends the transfer at this end, whether its command has begun or not.
  void call_off(stream_id transfer, const device_transfer& moving, const caf::error& why);
  uint64_t streams_made_ = 0;
  uint64_t records_ = 0;
  std::deque<stream_id> ended_; ///< Transfers in the order of their ends: the oldest outcomes are forgotten first.
};

device_actor::behavior_type device(device_actor::stateful_pointer<device_state> self, device_options options);

/// The first address of a device: 2^40 addresses for each, so that no device's address is another's.
constexpr uint64_t min_address_of(device_id id) {
  return (id.value % (1u << 23)) << 40;
}

} // namespace ringmaster
