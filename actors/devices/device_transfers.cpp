// A DEVICE's side of BeginSend and BeginReceive: who the peer is, which stream runs the command, how it ended.
#include "actors/devices/device.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace ringmaster {

namespace {

gpu_sim::GetStreamStatusResponse in_progress() {
  gpu_sim::GetStreamStatusResponse result;
  result.set_status(gpu_sim::IN_PROGRESS);
  return result;
}

} // namespace

gpu_sim::BeginSendResponse device_state::begin_send(const gpu_sim::BeginSendRequest& x) {
  gpu_sim::BeginSendResponse response;
  auto fail = [&](const caf::error& problem) {
    response.set_error(render(problem));
    return response;
  };
  auto peer = member(x.commid(), x.dstrank().value());
  if (!peer)
    return fail(peer.error());
  auto range = memory->at(x.sendbuffaddr().value(), x.numbytes()); // who is in a communicator has memory
  if (!range)
    return fail(range.error());
  if (peer->first == id)
    return fail(make_error(errc::invalid_argument,
                           fmt::format("rank {} is device 0x{:x} itself: use a copy within the device",
                                       x.dstrank().value(), id.value)));
  uint64_t own = 0;
  auto runner = runner_for(x.has_onstream(), x.onstream().value(), own);
  if (!runner)
    return fail(runner.error());
  auto number = own != 0 ? own : next_stream_id();
  start_transfer(number, *runner, x.commid(), *peer);
  response.set_initiated(true);
  response.mutable_streamid()->set_value(number);
  self->send(*runner, x, response.streamid(), peer->second);
  return response;
}

gpu_sim::BeginReceiveResponse device_state::begin_receive(const gpu_sim::BeginReceiveRequest& x) {
  gpu_sim::BeginReceiveResponse response;
  auto fail = [&](const caf::error& problem) {
    response.set_error(render(problem));
    return response;
  };
  auto number = x.streamid().value();
  if (number == 0 || streams.count(number) != 0)
    return fail(make_error(errc::invalid_argument,
                           fmt::format("stream id {} names no transfer: BeginReceive wants the one that BeginSend "
                                       "returned on the other device",
                                       number)));
  auto peer = member(x.commid(), x.srcrank().value());
  if (!peer)
    return fail(peer.error());
  auto range = memory->at(x.recvbuffaddr().value(), x.numbytes());
  if (!range)
    return fail(range.error());
  if (transfers.count(number) != 0)
    return fail(make_error(errc::invalid_argument, fmt::format("device 0x{:x} knows transfer {} already: each BeginSend "
                                                               "has one BeginReceive, on the other device",
                                                               id.value, number)));
  uint64_t own = 0;
  auto runner = runner_for(x.has_onstream(), x.onstream().value(), own);
  if (!runner)
    return fail(runner.error());
  start_transfer(number, *runner, x.commid(), *peer);
  gpu_sim::DeviceId source;
  source.set_value(peer->first.value);
  self->send(*runner, x, std::move(source));
  if (auto i = early.find(number); i != early.end()) {
    self->send(*runner, i->second);
    early.erase(i);
  }
  response.set_initiated(true);
  return response;
}

void device_state::route_offer(const offer& x) {
  auto sender = caf::actor_cast<stream_actor>(x.sender);
  auto i = transfers.find(x.key.channel);
  if (i != transfers.end() && i->second.runner) {
    self->send(i->second.runner, x);
  } else if (i != transfers.end()) {
    self->send(sender, refused{x.key, i->second.status.error(), nullptr});
  } else if (early.size() >= options.transfers_max) {
    auto reason = fmt::format("device 0x{:x} holds {} transfers nobody has asked for, its limit", id.value, early.size());
    self->send(sender, refused{x.key, reason, nullptr});
  } else {
    early.emplace(x.key.channel, x);
    self->delayed_send(self, options.streams_options.transfer_limit, atom::expire_v, x.key.channel);
  }
}

void device_state::withdraw_offer(const refused& x) {
  early.erase(x.key.channel);
  auto i = transfers.find(x.key.channel);
  if (i != transfers.end() && i->second.runner)
    return self->send(i->second.runner, x); // it answers
  if (i != transfers.end() && i->second.status.status() == gpu_sim::SUCCESS)
    return; // `taken` is on its way
  if (auto sender = caf::actor_cast<stream_actor>(x.sender))
    self->send(sender, refused{x.key, x.reason, nullptr});
}

void device_state::start_transfer(uint64_t number, stream_actor runner, uint64_t communicator,
                                  const std::pair<device_id, device_handle>& peer) {
  transfers[number] = {in_progress(), std::move(runner), communicator, peer.first};
  auto& watched = peers[peer.first.value];
  if (watched.transfers++ > 0)
    return;
  watched.device = peer.second.device;
  self->monitor(caf::actor_cast<caf::actor>(watched.device)); // if it is dead already we hear at once
}

void device_state::call_off(uint64_t number, const transfer& moving, const std::string& why) {
  self->send(moving.runner, refused{{number, 0, 0, 0, 0, 0}, why, nullptr});
}

void device_state::on_down(const caf::down_msg& x) {
  auto peer = std::find_if(peers.begin(), peers.end(),
                           [&](auto& entry) { return entry.second.device->address() == x.source; });
  if (peer == peers.end())
    return;
  for (auto& [number, moving] : transfers)
    if (moving.runner && moving.peer.value == peer->first)
      call_off(number, moving, fmt::format("device 0x{:x}, the other end of transfer {}, has died: {}", peer->first,
                                           number, render(x.reason)));
}

void device_state::end_transfer(uint64_t number, const gpu_sim::GetStreamStatusResponse& status) {
  auto i = transfers.find(number);
  if (i == transfers.end())
    return;
  i->second.status = status;
  i->second.runner = nullptr;
  if (auto peer = peers.find(i->second.peer.value); peer != peers.end() && --peer->second.transfers == 0) {
    self->demonitor(peer->second.device->address());
    peers.erase(peer);
  }
  ended_.push_back(number);
  if (ended_.size() > options.transfers_max) {
    transfers.erase(ended_.front());
    ended_.pop_front();
  }
}

void device_state::members_changed(const membership& now) {
  auto& x = *now.members;
  auto gone = [&](device_id peer) {
    return std::none_of(x.devices().begin(), x.devices().end(),
                        [&](auto& member) { return member.deviceid().value() == peer.value; });
  };
  for (auto& [number, moving] : transfers)
    if (moving.runner && (moving.communicator == 0 || moving.communicator == x.comm_id()) && gone(moving.peer))
      call_off(number, moving, fmt::format("device 0x{:x}, the other end of transfer {}, has left communicator {}",
                                           moving.peer.value, number, x.comm_id()));
  if (x.devices_size() == 0)
    communicators.erase(x.comm_id());
  else
    communicators[x.comm_id()] = now;
}

} // namespace ringmaster
