#pragma once

#include "messages/interfaces.hpp"

#include <caf/message_id.hpp>
#include <caf/message_priority.hpp>

#include <algorithm>
#include <vector>

namespace ringmaster {

/// Streams, or devices, that an actor has something to say to: those of its own process one by one, those of another by
/// that one's relay, in one message.
class audience {
public:
  enum class who { streams, devices };

  explicit audience(caf::scheduled_actor* self, who whom = who::streams) : self_(self), whom_(whom) {}

  /// `by_relay`: also where it is in this process.
  void add(device_id device, const device_handle& handle, bool by_relay) {
    if (!handle.relay || (!by_relay && handle.stream->node() == self_->node()))
      return near_.push_back(whom_ == who::streams ? handle.stream : handle.device);
    auto its = std::find_if(relayed_.rbegin(), relayed_.rend(), [&](auto& x) { return x.relay == handle.relay; });
    if (its != relayed_.rend()) // ranks of a process are neighbours: the last one
      return its->devices.push_back(device);
    relayed_.push_back({handle.relay, {device}});
  }

  /// Returns how many messages go to relays. With high priority it overtakes what waits in the receivers' mailboxes.
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
  struct company {
    caf::strong_actor_ptr relay;
    std::vector<device_id> devices;
  };

  caf::scheduled_actor* self_;
  who whom_;
  std::vector<caf::strong_actor_ptr> near_;
  std::vector<company> relayed_;
};

} // namespace ringmaster
