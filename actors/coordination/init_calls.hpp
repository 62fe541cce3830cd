#pragma once

#include "actors/calls/request_peer.hpp"
#include "messages/interfaces.hpp"
#include "runtime/coordination/access_rules.hpp"
#include "runtime/coordination/init_desk.hpp"

#include <caf/actor_addr.hpp>
#include <caf/result.hpp>
#include <caf/timespan.hpp>
#include <caf/typed_response_promise.hpp>

#include <map>

namespace ringmaster {

class coordinator_state;

/// The coordinator's CommInit calls. Each device that a call would take is asked for a sign of life first
/// (`init_desk`); a silent device is ended, and a free one is taken in its place.
class init_calls {
public:
  explicit init_calls(coordinator_state& coordinator) : coordinator_(coordinator) {}

  caf::result<gpu_sim::CommInitResponse> comm_init(const gpu_sim::CommInitRequest& x);
  /// The same of devices that have just sent a message, without asking them.
  gpu_sim::CommInitResponse init_at_once(const gpu_sim::CommInitRequest& x);

  /// A device has joined.
  void serve();
  /// A limit has passed. Returns whether it is a CommInit's.
  bool expire(uint64_t number);
  size_t waiting_of(const request_peer& peer) const;

private:
  struct waiting_call {
    request_peer peer;
    gpu_sim::CommInitRequest request;
    caf::actor_addr owner; ///< Invalid: the communicator outlives the client.
    calling_process caller;
    caf::typed_response_promise<gpu_sim::CommInitResponse> promise;
  };

  /// How long a device may be silent before it is asked a second time, and again before it is given up, and how long a
  /// call waits for a device that replaces it. A shorter silence may be a pause of its process.
  caf::timespan silence_max() const;
  /// The devices that the call would take now. Errors: those of CommInit.
  caf::expected<device_ids> ranks_for(const gpu_sim::CommInitRequest& x) const;
  gpu_sim::CommInitResponse init_of(const gpu_sim::CommInitRequest& x, const device_ids& ranks,
                                    const calling_process& caller);
  gpu_sim::CommInitResponse refuse(const gpu_sim::CommInitRequest& x, const caf::error& problem);
  /// Does what the desk decides.
  void advance(uint64_t number);
  void ask_for_sign(uint64_t number, device_id id, bool again);
  void give_up(uint64_t number, device_id id);
  void answer(uint64_t number, gpu_sim::CommInitResponse with);

  coordinator_state& coordinator_;
  init_desk desk_;
  std::map<uint64_t, waiting_call> calls_;
};

} // namespace ringmaster
