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
  for (auto& [id, communicator] : communicators.alive())
    if (communicator.handle == sender) { // what its ranks have split off it is like itself
      auto owner = owned_.owner_of(id);
      auto client = std::find_if(clients_.begin(), clients_.end(),
                                 [&](auto& x) { return owner && x.second == *owner; });
      return client == clients_.end() ? caf::actor_addr{} : client->first;
    }
  return sender->address();
}

client_id coordinator_state::id_of_client(const caf::actor_addr& client) {
  auto [i, is_new] = clients_.emplace(client, client_id{last_client_.value + 1});
  if (is_new)
    ++last_client_.value;
  return i->second;
}

void coordinator_state::monitor_client(const caf::actor_addr& client, client_id id) {
  if (auto handle = caf::actor_cast<caf::actor>(client))
    return self->monitor(handle); // if it has ended we hear at once
  clients_.erase(client);
  client_gone(id, "it has ended");
}

void coordinator_state::own(const caf::actor_addr& client, communicator_id what) {
  if (!client)
    return;
  bool known = clients_.count(client) != 0;
  auto id = id_of_client(client);
  owned_.made(id, what);
  if (!known)
    monitor_client(client, id);
}

void coordinator_state::own(const caf::actor_addr& client, owned_range what) {
  if (!client)
    return;
  bool known = clients_.count(client) != 0;
  auto id = id_of_client(client);
  owned_.allocated(id, what);
  if (!known)
    monitor_client(client, id);
  forget_idle_clients(); // it may have been another's
}

void coordinator_state::freed(owned_range what) {
  owned_.freed(what);
  forget_idle_clients();
}

void coordinator_state::forget_idle_clients() {
  std::erase_if(clients_, [this](auto& entry) {
    if (owned_.owns_anything(entry.second))
      return false;
    if (std::ranges::none_of(notices, [&](auto& x) { return x.second == entry.first; })) // whose end is told, too
      self->demonitor(entry.first);
    return true;
  });
}

void coordinator_state::client_gone(client_id client, const std::string& why) {
  auto left = owned_.take(client);
  if (left.communicators.empty())
    return give_back(left.ranges);
  spdlog::info("the client that made communicator {} is gone ({}): it is destroyed",
               fmt::join(left.communicators, ", "), why);
  // Its memory goes when no stream touches it any more.
  auto waiting = std::make_shared<size_t>(left.communicators.size());
  auto ended = [this, waiting, ranges = std::move(left.ranges)](communicator_id id, const caf::error& reason) {
    communicator_ended(id, reason);
    if (--*waiting == 0)
      give_back(ranges);
  };
  auto limit = options.request_limit + options.communicators.operation_limit; // for streams that have to be given up
  for (auto id : left.communicators) {
    auto known = communicators.find(id);
    if (known == nullptr) {
      ended(id, {});
      continue;
    }
    proto::CommDestroyRequest request;
    request.set_comm_id(id.value);
    request.set_reason("the client that made it is gone: " + why);
    auto handle = caf::actor_cast<communicator_actor>(known->handle);
    self->request(handle, limit, std::move(request))
      .then([id, ended](const proto::CommDestroyResponse&) { ended(id, {}); },
            [this, id, handle, ended](const caf::error& problem) {
              self->send_exit(handle, caf::exit_reason::kill);
              ended(id, with_context("it did not end when it was told to", problem));
            });
  }
}

void coordinator_state::give_back(const std::set<owned_range>& ranges) {
  for (auto& x : ranges)
    if (auto device = devices.find(x.device)) {
      proto::FreeRequest request;
      request.mutable_address()->set_value(x.address);
      caf::anon_send(caf::actor_cast<device_actor>(device->handle.device),
                     std::move(request)); // nobody wants the answer
    }
}

} // namespace ringmaster
