#include "actors/coordination/client_directory.hpp"

#include "actors/coordination/coordinator.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <caf/send.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

namespace ringmaster {

caf::actor_addr client_directory::calling_client() const {
  auto& sender = coordinator_.self->current_sender();
  if (!sender)
    return {};
  for (auto& [id, communicator] : coordinator_.communicators.alive())
    if (communicator.handle == sender) { // its ranks have split it: the parts belong to the owner of the whole
      auto owner = owned_.owner_of(id);
      auto client = std::ranges::find_if(clients_, [&](auto& x) { return owner && x.second == *owner; });
      ensure(!owner || client != clients_.end(), "the owner of a communicator is a known client");
      return client == clients_.end() ? caf::actor_addr{} : client->first;
    }
  return sender->address();
}

client_id client_directory::id_of(const caf::actor_addr& client) {
  auto [i, is_new] = clients_.emplace(client, client_id{last_client_.value + 1});
  if (is_new)
    ++last_client_.value;
  ensure(i->second.value != 0 && i->second <= last_client_, "a client's id was given to it");
  return i->second;
}

void client_directory::monitor(const caf::actor_addr& client, client_id id) {
  if (auto handle = caf::actor_cast<caf::actor>(client))
    return coordinator_.self->monitor(handle); // if it has ended, its down message comes at once
  clients_.erase(client);
  client_gone(id, "it has ended");
}

void client_directory::own(const caf::actor_addr& client, communicator_id what) {
  if (!client)
    return;
  const bool known = clients_.contains(client);
  auto id = id_of(client);
  owned_.made(id, what);
  coordinator_.store_communicator(what, [&](auto& stored) { stored.set_owner(caf::to_string(client)); });
  if (!known)
    monitor(client, id);
}

void client_directory::own(const caf::actor_addr& client, owned_range what) {
  if (!client)
    return;
  const bool known = clients_.contains(client);
  auto id = id_of(client);
  owned_.allocated(id, what);
  if (!known)
    monitor(client, id);
  forget_idle(); // the range may have been another client's
}

void client_directory::freed(owned_range what) {
  owned_.freed(what);
  forget_idle();
}

void client_directory::communicator_ended(communicator_id what) {
  owned_.ended(what);
  forget_idle();
}

void client_directory::device_gone(device_id device) {
  owned_.gone(device);
  forget_idle();
}

void client_directory::publish(const std::string& name, const caf::strong_actor_ptr& who) {
  if (!who)
    return;
  published_[name] = who->address();
  coordinator_.self->monitor(caf::actor_cast<caf::actor>(who));
}

caf::strong_actor_ptr client_directory::find(const std::string& name) const {
  auto found = published_.find(name);
  return found == published_.end() ? nullptr : caf::actor_cast<caf::strong_actor_ptr>(found->second);
}

void client_directory::withdraw_names(const caf::actor_addr& who) {
  std::erase_if(published_, [&](auto& x) { return x.second == who; });
}

void client_directory::ended(const caf::down_msg& x) {
  if (auto client = clients_.extract(x.source))
    client_gone(client.mapped(), x.reason ? render(x.reason) : "it has ended");
}

void client_directory::forget_idle() {
  std::erase_if(clients_, [this](auto& entry) {
    if (owned_.owns_anything(entry.second))
      return false;
    if (std::ranges::none_of(published_, [&](auto& x) { return x.second == entry.first; }))
      coordinator_.self->demonitor(entry.first);
    return true;
  });
}

void client_directory::client_gone(client_id client, const std::string& why) {
  auto left = owned_.take(client);
  ensure(!owned_.owns_anything(client), "a client that has ended owns nothing");
  if (!left.communicators.empty())
    spdlog::info("the client that made communicator {} has ended ({}): it is destroyed",
                 fmt::join(left.communicators, ", "), why);
  end(std::move(left), "the client that made it has ended: " + why);
}

void client_directory::end(ownership::belongings left, const std::string& reason) {
  if (left.communicators.empty())
    return give_back(left.ranges);
  // Its memory is freed after its communicators' streams have stopped using it.
  auto waiting = std::make_shared<size_t>(left.communicators.size());
  auto ended = [this, waiting, ranges = std::move(left.ranges)](communicator_id id, const caf::error& problem) {
    ensure(*waiting > 0, "each communicator of a client ends once");
    coordinator_.communicator_ended(id, problem);
    if (--*waiting == 0)
      give_back(ranges);
  };
  for (auto id : left.communicators)
    destroy(id, reason, ended);
}

void client_directory::destroy(communicator_id id, const std::string& reason, const end_function& ended) {
  auto known = coordinator_.communicators.find(id);
  if (known == nullptr)
    return ended(id, {});
  auto& options = coordinator_.options;
  auto limit = options.request_limit + options.communicators.operation_limit; // for streams that are given up
  proto::CommDestroyRequest request;
  request.set_comm_id(id.value);
  request.set_reason(reason);
  auto handle = caf::actor_cast<communicator_actor>(known->handle);
  coordinator_.self->request(handle, limit, std::move(request))
    .then([id, ended](const proto::CommDestroyResponse&) { ended(id, {}); },
          [this, id, handle, ended](const caf::error& problem) {
            coordinator_.self->send_exit(handle, caf::exit_reason::kill);
            ended(id, with_context("it did not end when it was asked to", problem));
          });
}

void client_directory::end_without_owner(ownership::belongings left) {
  end(std::move(left), "the client that made it has not come back after the coordinator was restarted");
}

void client_directory::give_back(const std::set<owned_range>& ranges) {
  for (auto& x : ranges) {
    coordinator_.access.freed(x);
    if (auto device = coordinator_.devices.find(x.device)) {
      proto::FreeRequest request;
      request.mutable_address()->set_value(x.address);
      caf::anon_send(caf::actor_cast<device_actor>(device->handle.device),
                     std::move(request)); // the answer does not matter
    }
  }
}

} // namespace ringmaster
