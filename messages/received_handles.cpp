#include "messages/received_handles.hpp"

#include "messages/errc.hpp"

#include <caf/actor_config.hpp>
#include <caf/execution_unit.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/make_actor.hpp>
#include <caf/monitorable_actor.hpp>

#include <algorithm>
#include <memory>
#include <utility>

namespace ringmaster {

namespace {

/// Behaves as every dead actor does: a monitor gets its down message at once, a request its error, and all other
/// messages are dropped.
class lost_actor final : public caf::monitorable_actor {
public:
  explicit lost_actor(caf::actor_config& config) : caf::monitorable_actor(config) {
    cleanup(make_error(errc::device_lost, "it died before its handle arrived"), nullptr);
  }

  const char* name() const override { return "lost_actor"; }
  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit*) override { bounce(what); }
};

caf::strong_actor_ptr alive_or_lost(caf::actor_system& system, const caf::strong_actor_ptr& handle) {
  if (handle != nullptr)
    return handle;
  caf::actor_config config;
  return caf::make_actor<lost_actor, caf::strong_actor_ptr>(system.next_actor_id(), system.node(), &system, config);
}

bool is_whole(const device_handle& x) {
  return x.device != nullptr && x.stream != nullptr;
}

std::shared_ptr<const device_handles> all_received(caf::actor_system& system,
                                                   const std::shared_ptr<const device_handles>& handles) {
  if (handles == nullptr || std::all_of(handles->begin(), handles->end(), is_whole))
    return handles;
  device_handles result;
  for (auto& x : *handles)
    result.push_back(received(system, x));
  return std::make_shared<const device_handles>(std::move(result));
}

} // namespace

device_handle received(caf::actor_system& system, const device_handle& handle) {
  return {alive_or_lost(system, handle.device), alive_or_lost(system, handle.stream), handle.relay, handle.memory};
}

operation_orders received(caf::actor_system& system, const operation_orders& orders) {
  return {orders.batch, all_received(system, orders.members)};
}

membership received(caf::actor_system& system, const membership& members) {
  return {members.members, all_received(system, members.handles)};
}

bool is_lost(const caf::strong_actor_ptr& handle) {
  return handle != nullptr && dynamic_cast<lost_actor*>(handle->get()) != nullptr;
}

} // namespace ringmaster
