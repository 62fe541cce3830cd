// The COORDINATOR's clients: what they have made goes when they are gone, unless they wanted it to stay.
#include "actors/coordination/coordinator.hpp"

#include <algorithm>
#include <caf/send.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

namespace ringmaster {

caf::actor_addr coordinator_state::calling_client() const {
  auto& sender = self->current_sender();
  if (!sender)
    return {};
  for (auto& [number, entry] : communicators)
    if (entry.handle.address() == sender->address()) { // what its ranks have split off it is like itself
      auto owner = owned_.owner_of(communicator_id{number});
      auto client = std::find_if(clients_.begin(), clients_.end(), [&](auto& x) { return owner && x.second == *owner; });
      return client == clients_.end() ? caf::actor_addr{} : client->first;
    }
  return sender->address();
}

template <class What>
void coordinator_state::own(const caf::actor_addr& client, What what) {
  if (!client)
    return;
  auto [i, is_new] = clients_.emplace(client, client_id{client_ids_ + 1});
  auto id = i->second;
  if constexpr (std::is_same_v<What, communicator_id>)
    owned_.made(id, what);
  else
    owned_.allocated(id, what);
  if (!is_new)
    return;
  ++client_ids_;
  if (auto handle = caf::actor_cast<caf::actor>(client))
    return self->monitor(handle); // if it has ended we hear at once
  clients_.erase(client);
  client_gone(id, "it has ended");
}

template void coordinator_state::own(const caf::actor_addr&, communicator_id);
template void coordinator_state::own(const caf::actor_addr&, owned_range);

void coordinator_state::freed(owned_range what) {
  owned_.freed(what);
  forget_idle_clients();
}

void coordinator_state::forget_idle_clients() {
  std::erase_if(clients_, [this](auto& entry) {
    if (owned_.owns_anything(entry.second))
      return false;
    self->demonitor(entry.first);
    return true;
  });
}

void coordinator_state::client_gone(client_id client, const std::string& why) {
  auto left = owned_.take(client);
  if (left.communicators.empty())
    return give_back(left.ranges);
  spdlog::info("the client that made communicator {} is gone ({}): it is destroyed", fmt::join(left.communicators, ", "),
               why);
  // Its memory goes when no stream touches it any more.
  auto waiting = std::make_shared<size_t>(left.communicators.size());
  auto ended = [this, waiting, ranges = std::move(left.ranges)] {
    if (--*waiting == 0)
      give_back(ranges);
  };
  auto limit = options.request_limit + options.communicators.operation_limit; // as for a client's own
  for (auto id : left.communicators) {
    auto entry = communicators.find(id.value);
    if (entry == communicators.end()) {
      ended();
      continue;
    }
    proto::CommDestroyRequest request;
    request.set_comm_id(id.value);
    request.set_reason("the client that made it is gone: " + why);
    auto handle = entry->second.handle;
    self->request(handle, limit, std::move(request))
      .then([this, id, ended](const proto::CommDestroyResponse&) mutable {
              communicator_ended(id.value, {});
              ended();
            },
            [this, id, handle, ended](const caf::error& problem) mutable {
              communicator_ended(id.value, "it did not end when it was told to: " + render(problem));
              self->send_exit(handle, caf::exit_reason::kill);
              ended();
            });
  }
}

void coordinator_state::give_back(const std::set<owned_range>& ranges) {
  for (auto& x : ranges)
    if (auto device = devices.find(x.device.value); device != devices.end()) {
      proto::FreeRequest request;
      request.mutable_address()->set_value(x.address);
      caf::anon_send(caf::actor_cast<device_actor>(device->second.handle.device), std::move(request));
    }
}

} // namespace ringmaster
