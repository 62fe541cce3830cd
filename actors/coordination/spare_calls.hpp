#pragma once

#include "messages/interfaces.hpp"
#include "runtime/coordination/spare_desk.hpp"

#include <caf/result.hpp>
#include <caf/typed_response_promise.hpp>

#include <map>

namespace ringmaster {

class coordinator_state;

/// Communicators' requests for spares, under the policy "replace" (`spare_desk`). The spare gets the host's copies of
/// the lost device's inputs, or, from a device that leaves, its memory.
class spare_calls {
public:
  explicit spare_calls(coordinator_state& coordinator);

  caf::result<proto::SpareResponse, device_handle> request(const proto::SpareRequest& x);
  /// A device has joined or left a communicator, or a communicator has ended.
  void serve();
  /// A limit has passed. Returns whether it is that of a request for a spare.
  bool expire(uint64_t number);

private:
  using promise = caf::typed_response_promise<proto::SpareResponse, device_handle>;

  /// Whether the communicator that asks is still alive.
  bool wanted(uint64_t number) const;
  /// Does what the desk decides.
  void act(uint64_t number, const spare_desk::step& step);
  void restore(uint64_t number, device_id id);
  /// Sends the host's copies of a range to the spare; returns how many. Errors: the host has not the whole range.
  caf::expected<size_t> send_copies(uint64_t number, device_id id, const proto::SpareRequest::Range& range);
  /// Copies a range from a device that leaves to the one that replaces it, piece by piece, from `done` bytes on.
  void hand_on(uint64_t number, const gpu_sim::DeviceMetadata& from, device_id to,
               const proto::SpareRequest::Range& range, uint64_t done);
  void copied(uint64_t number, const caf::error& problem);

  coordinator_state& coordinator_;
  spare_desk desk_;
  std::map<uint64_t, promise> promises_;
};

} // namespace ringmaster
