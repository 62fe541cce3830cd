#pragma once

#include "messages/interfaces.hpp"

#include <caf/message_id.hpp>
#include <caf/message_priority.hpp>

#include <algorithm>
#include <vector>

namespace ringmaster {

/// The streams, or devices, that a message is for. In this process each gets the message; for those of another process
/// its relay gets one message.
class audience {
public:
  enum class who { streams, devices };

  explicit audience(caf::scheduled_actor* self, who whom = who::streams) : self_(self), whom_(whom) {}

  /// `by_relay`: also if the device is in this process.
  void add(device_id device, const device_handle& handle, bool by_relay) {
    if (!handle.relay || (!by_relay && handle.stream->node() == self_->node()))
      return near_.push_back(whom_ == who::streams ? handle.stream : handle.device);
    auto its = std::find_if(relayed_.rbegin(), relayed_.rend(), [&](auto& x) { return x.relay == handle.relay; });
    if (its != relayed_.rend()) // ranks of a process are neighbours: found at once
      return its->devices.push_back(device);
    relayed_.push_back({handle.relay, {device}});
  }

  /// Returns the number of messages to relays. With high priority the message overtakes those in the receivers'
  /// mailboxes.
  template <class T>
  size_t tell(const T& what, caf::message_priority priority = caf::message_priority::normal) const {
    const auto id = caf::make_message_id(priority);
    auto message = caf::make_message(what); // one for all
    for (auto& each : near_)
      each->enqueue(self_->ctrl(), id, message, self_->context());
    for (auto& x : relayed_)
      x.relay->enqueue(self_->ctrl(), id, caf::make_message(what, x.devices), self_->context());
    return relayed_.size();
  }

private:
  struct relayed {
    caf::strong_actor_ptr relay;
    std::vector<device_id> devices;
  };

  caf::scheduled_actor* self_;
  who whom_;
  std::vector<caf::strong_actor_ptr> near_;
  std::vector<relayed> relayed_;
};

} // namespace ringmaster
