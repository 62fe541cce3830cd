// The COORDINATOR's communicators: how they are made, of free devices and of each other.
#include "actors/coordination/coordinator.hpp"

#include "actors/calls/answers.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringmaster {

namespace {

caf::error denied(std::string text, errc code = errc::invalid_argument) {
  return make_error(code, std::move(text));
}

using device_ids = std::vector<uint64_t>;

/// New communicators by colour.
using parts = std::map<int32_t, device_ids>;

caf::expected<parts> split(const proto::CommDeriveRequest::Split& x, const device_ids& ranks) {
  if (auto callers = device_ids{x.device_ids().begin(), x.device_ids().end()}; !callers.empty() && callers != ranks)
    return denied(fmt::format("split: devices 0x{:x} called it, and by now the ranks are devices 0x{:x}; split again",
                              fmt::join(callers, ", 0x"), fmt::join(ranks, ", 0x")));
  auto check = [&](int given, const char* what) {
    return given == 0 || given == static_cast<int>(ranks.size())
             ? caf::error{}
             : denied(fmt::format("split: {} {} for {} ranks; give one a rank, or none", given, what, ranks.size()));
  };
  if (auto problem = check(x.colors_size(), "colours"))
    return problem;
  if (auto problem = check(x.keys_size(), "keys"))
    return problem;
  std::map<int32_t, std::vector<std::pair<int64_t, uint64_t>>> keyed;
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank)
    if (auto color = x.colors().empty() ? 0 : x.colors(rank); color >= 0)
      keyed[color].emplace_back(x.keys().empty() ? 0 : x.keys(rank), ranks[static_cast<size_t>(rank)]);
  parts result;
  for (auto& [color, members] : keyed) {
    std::stable_sort(members.begin(), members.end(), [](auto& a, auto& b) { return a.first < b.first; });
    for (auto& member : members)
      result[color].push_back(member.second);
  }
  return result;
}

caf::expected<parts> shrink(const proto::CommDeriveRequest::Shrink& x, const device_ids& ranks) {
  device_ids left;
  for (auto rank : x.ranks())
    if (rank >= ranks.size())
      return denied(fmt::format("shrink: there is no rank {}; the communicator has ranks 0 to {}", rank, ranks.size() - 1));
  for (uint32_t rank = 0; rank < ranks.size(); ++rank)
    if (std::count(x.ranks().begin(), x.ranks().end(), rank) == 0)
      left.push_back(ranks[rank]);
  if (left.empty())
    return denied("shrink: no rank would be left");
  return parts{{0, left}};
}

} // namespace

bool coordinator_state::may_replace(uint64_t device) const {
  auto i = devices.find(device);
  return i != devices.end()
         && std::all_of(i->second.communicators.begin(), i->second.communicators.end(),
                        [&](auto number) { return communicators.at(number).policy == proto::REPLACE; });
}

caf::expected<device_ids> coordinator_state::free_devices(size_t wanted, const std::string& who) const {
  device_ids free;
  for (auto& [id, device] : devices)
    if (device.communicators.empty())
      free.push_back(id);
  if (free.size() < wanted)
    return denied(fmt::format("{} asks for {} devices, but {} are free: {} are here, {} of them in communicators", who, wanted,
                              free.size(), devices.size(), devices.size() - free.size()),
                  errc::too_few_devices);
  free.resize(wanted);
  return free;
}

gpu_sim::CommInitResponse coordinator_state::comm_init(const gpu_sim::CommInitRequest& x) {
  auto senseless = [](std::string text) {
    return refusal<gpu_sim::CommInitResponse>(errc::invalid_argument, std::move(text));
  };
  if (!x.defaultpolicy() && !proto::FailurePolicy_IsValid(x.policy()))
    return senseless(fmt::format("failure policy {} is not one of this version's", static_cast<int>(x.policy())));
  communicator_entry like;
  like.policy = x.defaultpolicy() ? options.communicators.policy : x.policy();
  like.deterministic = x.has_deterministic() ? x.deterministic() : options.communicators.deterministic;
  like.outlives_client = x.outlivesclient();
  if (!x.deviceids().empty() && x.numdevices() != 0 && static_cast<int>(x.numdevices()) != x.deviceids_size())
    return senseless(fmt::format("CommInit asks for {} devices and names {}", x.numdevices(), x.deviceids_size()));
  if (x.deviceids().empty() && x.numdevices() == 0)
    return senseless("CommInit asks for 0 devices; a communicator has at least 1");
  auto ranks = x.deviceids().empty() ? free_devices(x.numdevices(), "CommInit")
                                     : device_ids{x.deviceids().begin(), x.deviceids().end()};
  auto problem = ranks ? check_new({*ranks}) : ranks.error();
  if (problem)
    return refusal<gpu_sim::CommInitResponse>(problem);
  auto made = make_communicator(*ranks, like);
  if (!x.outlivesclient())
    own(calling_client(), communicator_id{made.commid()});
  return made;
}

caf::error coordinator_state::check_new(const std::vector<device_ids>& groups) {
  if (communicators.size() + groups.size() > options.communicators_max)
    return make_error(errc::too_many,
                      fmt::format("{} communicators are alive, {} more would be over the limit of {}; destroy some",
                                  communicators.size(), groups.size(), options.communicators_max));
  for (auto& ranks : groups) {
    std::map<uint64_t, uint32_t> places;
    for (auto id : ranks) {
      if (auto known = device_of(id); !known)
        return std::move(known.error());
      auto rank = static_cast<uint32_t>(places.size());
      if (auto [i, added] = places.emplace(id, rank); !added)
        return denied(fmt::format("device 0x{:x} would be rank {} and rank {} of one communicator", id, i->second, rank));
    }
  }
  return caf::none;
}

gpu_sim::CommInitResponse coordinator_state::make_communicator(const device_ids& ranks, const communicator_entry& like) {
  auto opts = options.communicators;
  opts.id = communicator_id{++communicator_ids_};
  opts.policy = like.policy;
  opts.deterministic = like.deterministic;
  opts.coordinator = self;
  gpu_sim::CommInitResponse response;
  std::vector<gpu_sim::DeviceMetadata> metadata;
  device_handles handles;
  for (auto id : ranks) {
    auto& device = devices.at(id);
    device.communicators.insert(opts.id.value);
    if (like.policy != proto::REPLACE) // nobody will say what becomes of them
      copies.forget(device_id{id});
    *response.add_devices() = device.metadata;
    metadata.push_back(device.metadata);
    handles.push_back(device.handle);
  }
  // The client's next call may be a BeginSend: it must find its ranks, and what we tell a device comes in this order.
  proto::Members members;
  members.set_comm_id(opts.id.value);
  members.set_epoch(1);
  *members.mutable_devices() = response.devices();
  auto news = caf::make_message(membership::of(std::move(members), handles));
  for (auto& handle : handles)
    handle.device->enqueue(self->ctrl(), caf::make_message_id(), news, self->context());
  auto handle = self->spawn<caf::monitored>(communicator, opts, std::move(metadata), std::move(handles));
  communicators[opts.id.value] = {handle, like.policy, like.deterministic, like.outlives_client, {}};
  response.set_success(true);
  response.set_commid(opts.id.value);
  return response;
}

caf::result<proto::CommDeriveResponse> coordinator_state::derive(const proto::CommDeriveRequest& x) {
  auto parent = communicator_of(x.comm_id());
  if (!parent)
    return refusal<proto::CommDeriveResponse>(parent.error());
  auto owner = x.outlives_client() ? caf::actor_addr{} : calling_client();
  auto promise = self->make_response_promise<proto::CommDeriveResponse>();
  gpu_sim::GetCommStatusRequest who;
  who.set_commid(x.comm_id());
  self->request(*parent, options.request_limit, who)
    .then([this, x, promise, owner](const gpu_sim::GetCommStatusResponse& members) mutable {
            promise.deliver(derive_from(members, x, owner));
          },
          [promise, x](const caf::error& problem) mutable {
            promise.deliver(refusal<proto::CommDeriveResponse>(
              problem == caf::sec::request_timeout ? errc::timed_out : errc::unknown_communicator,
              fmt::format("communicator {} did not say who its members are: {}", x.comm_id(), render(problem))));
          });
  return promise;
}

proto::CommDeriveResponse coordinator_state::derive_from(const gpu_sim::GetCommStatusResponse& members,
                                                         const proto::CommDeriveRequest& x,
                                                         const caf::actor_addr& owner) {
  auto no = [](const caf::error& problem) { return refusal<proto::CommDeriveResponse>(problem); };
  auto parent = communicators.find(x.comm_id());
  if (parent == communicators.end() || members.devices().empty())
    return no(make_error(errc::unknown_communicator, fmt::format("communicator {} has ended", x.comm_id())));
  device_ids ranks;
  for (auto& device : members.devices())
    ranks.push_back(device.deviceid().value());
  caf::expected<parts> wanted = parts{{0, ranks}};
  if (x.has_split()) {
    wanted = split(x.split(), ranks);
  } else if (x.has_shrink()) {
    wanted = shrink(x.shrink(), ranks);
  } else if (x.has_grow()) {
    auto more = x.grow().device_ids().empty() ? free_devices(x.grow().devices(), "grow")
                                              : device_ids{x.grow().device_ids().begin(), x.grow().device_ids().end()};
    if (!more)
      return no(more.error());
    wanted->at(0).insert(wanted->at(0).end(), more->begin(), more->end());
  }
  if (!wanted)
    return no(wanted.error());
  std::vector<device_ids> groups;
  for (auto& part : *wanted)
    groups.push_back(part.second);
  if (auto problem = check_new(groups))
    return no(problem);
  proto::CommDeriveResponse result;
  for (auto& [color, members_of_it] : *wanted) {
    auto& part = *result.add_parts();
    part.set_color(color);
    auto like = parent->second;
    like.outlives_client = !owner;
    *part.mutable_comm() = make_communicator(members_of_it, like);
    own(owner, communicator_id{part.comm().commid()});
  }
  result.set_success(true);
  return result;
}

} // namespace ringmaster
