// A DEVICE's side of BeginSend and BeginReceive: who the peer is, which stream runs the command, how it ended.
#include "actors/devices/device.hpp"

#include "actors/calls/answers.hpp"
#include "runtime/logging/log.hpp"
#include "runtime/reduction/reducer.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace ringmaster {

namespace {

gpu_sim::GetStreamStatusResponse in_progress() {
  gpu_sim::GetStreamStatusResponse result;
  result.set_status(gpu_sim::IN_PROGRESS);
  return result;
}

/// What is wrong with the reduction of a BeginSend or BeginReceive.
template <class Request>
caf::error check_reduction(const Request& x) {
  if (!x.has_reduction())
    return caf::none;
  auto found = reducer::of_transfer(x.reduction(), x.numbytes());
  return found ? caf::error{} : std::move(found.error());
}

} // namespace

gpu_sim::BeginSendResponse device_state::begin_send(const gpu_sim::BeginSendRequest& x) {
  auto fail = [](const caf::error& problem) { return refusal<gpu_sim::BeginSendResponse>(problem); };
  communicator_id communicator{x.commid()};
  auto peer = member(communicator, x.dstrank().value());
  if (!peer)
    return fail(peer.error());
  auto range = memory->at(x.sendbuffaddr().value(), x.numbytes()); // who is in a communicator has memory
  if (!range)
    return fail(range.error());
  if (auto problem = check_reduction(x))
    return fail(problem);
  if (peer->first == id)
    return fail(
      invalid(fmt::format("rank {} is device 0x{:x} itself: use a copy within the device", x.dstrank().value(), id)));
  stream_id own;
  auto runner = runner_for(x.has_onstream(), stream_id{x.onstream().value()}, own);
  if (!runner)
    return fail(runner.error());
  auto transfer = own.value != 0 ? own : next_stream_id();
  start_transfer(transfer, *runner, communicator, *peer);
  gpu_sim::BeginSendResponse response;
  response.set_initiated(true);
  response.mutable_streamid()->set_value(transfer.value);
  self->send(*runner, x, response.streamid(), peer->second);
  return response;
}

gpu_sim::BeginReceiveResponse device_state::begin_receive(const gpu_sim::BeginReceiveRequest& x) {
  auto fail = [](const caf::error& problem) { return refusal<gpu_sim::BeginReceiveResponse>(problem); };
  stream_id transfer{x.streamid().value()};
  communicator_id communicator{x.commid()};
  if (transfer.value == 0 || streams.count(transfer) != 0)
    return fail(invalid(fmt::format("stream id {} names no transfer: BeginReceive wants the one that BeginSend "
                                    "returned on the other device",
                                    transfer)));
  auto peer = member(communicator, x.srcrank().value());
  if (!peer)
    return fail(peer.error());
  auto range = memory->at(x.recvbuffaddr().value(), x.numbytes());
  if (!range)
    return fail(range.error());
  if (auto problem = check_reduction(x))
    return fail(problem);
  if (transfers.count(transfer) != 0)
    return fail(invalid(fmt::format("device 0x{:x} knows transfer {} already: each BeginSend "
                                    "has one BeginReceive, on the other device",
                                    id, transfer)));
  stream_id own;
  auto runner = runner_for(x.has_onstream(), stream_id{x.onstream().value()}, own);
  if (!runner)
    return fail(runner.error());
  start_transfer(transfer, *runner, communicator, *peer);
  gpu_sim::DeviceId source;
  source.set_value(peer->first.value);
  self->send(*runner, x, std::move(source));
  if (auto i = early.find(transfer); i != early.end()) {
    self->send(*runner, i->second);
    early.erase(i);
  }
  gpu_sim::BeginReceiveResponse response;
  response.set_initiated(true);
  return response;
}

void device_state::route_offer(const offer& x) {
  auto sender = caf::actor_cast<stream_actor>(x.sender);
  stream_id transfer{x.key.channel};
  auto i = transfers.find(transfer);
  if (i != transfers.end() && i->second.runner) {
    self->send(i->second.runner, x);
  } else if (i != transfers.end()) {
    self->send(sender, refused::by(x.key, error_in(i->second.status)));
  } else if (early.size() >= options.transfers_max) {
    auto reason = fmt::format("device 0x{:x} holds {} transfers without a BeginReceive, its limit", id, early.size());
    self->send(sender, refused::by(x.key, make_error(errc::too_many, reason)));
  } else {
    early.emplace(transfer, x);
    self->delayed_send(self, options.streams_options.transfer_limit, atom::expire_v, x.key.channel);
  }
}

void device_state::withdraw_offer(const refused& x) {
  stream_id transfer{x.key.channel};
  early.erase(transfer);
  auto i = transfers.find(transfer);
  if (i != transfers.end() && i->second.runner)
    return self->send(i->second.runner, x); // it answers
  if (i != transfers.end() && i->second.status.status() == gpu_sim::SUCCESS)
    return; // `taken` is on its way
  if (auto sender = caf::actor_cast<stream_actor>(x.sender))
    self->send(sender, refused::by(x.key, x.why()));
}

void device_state::start_transfer(stream_id transfer, stream_actor runner, communicator_id communicator,
                                  const std::pair<device_id, device_handle>& peer) {
  transfers[transfer] = {in_progress(), std::move(runner), communicator, peer.first};
  auto& watched = peers[peer.first];
  if (watched.transfers++ > 0)
    return;
  watched.device = peer.second.device;
  self->monitor(caf::actor_cast<caf::actor>(watched.device)); // if it is dead already we hear at once
}

void device_state::call_off(stream_id transfer, const device_transfer& moving, const caf::error& why) {
  self->send(moving.runner, refused::by({.channel = transfer.value}, why));
}

void device_state::on_down(const caf::down_msg& x) {
  auto peer = std::find_if(peers.begin(), peers.end(),
                           [&](auto& entry) { return entry.second.device->address() == x.source; });
  if (peer == peers.end())
    return;
  for (auto& [transfer, moving] : transfers)
    if (moving.runner && moving.peer == peer->first)
      call_off(transfer, moving,
               make_error(errc::device_lost, fmt::format("device 0x{:x}, the other end of transfer {}, has died: {}",
                                                         peer->first, transfer, render(x.reason))));
}

void device_state::end_transfer(stream_id transfer, const gpu_sim::GetStreamStatusResponse& status) {
  auto i = transfers.find(transfer);
  if (i == transfers.end())
    return;
  i->second.status = status;
  i->second.runner = nullptr;
  if (auto peer = peers.find(i->second.peer); peer != peers.end() && --peer->second.transfers == 0) {
    self->demonitor(peer->second.device->address());
    peers.erase(peer);
  }
  ended_.push_back(transfer);
  if (ended_.size() > options.transfers_max) {
    transfers.erase(ended_.front());
    ended_.pop_front();
  }
}

void device_state::members_changed(const membership& now) {
  auto& x = *now.members;
  if (static_cast<size_t>(x.devices_size()) != now.handles->size())
    return log_warn({.device = id.value}, "device {:#x}: {} members of communicator {} came with the handles of {}", id,
                    x.devices_size(), x.comm_id(), now.handles->size());
  auto gone = [&](device_id peer) {
    return std::none_of(x.devices().begin(), x.devices().end(),
                        [&](auto& member) { return member.deviceid().value() == peer.value; });
  };
  communicator_id communicator{x.comm_id()};
  for (auto& [transfer, moving] : transfers)
    if (moving.runner && (moving.communicator.value == 0 || moving.communicator == communicator) && gone(moving.peer))
      call_off(transfer, moving,
               make_error(errc::device_lost,
                          fmt::format("device 0x{:x}, the other end of transfer {}, has left communicator {}",
                                      moving.peer, transfer, communicator)));
  if (x.devices_size() == 0) {
    communicators.erase(communicator);
    return;
  }
  auto& known = communicators[communicator];
  if (auto& mapped = options.streams_options.neighbours; mapped && known.handles)
    for (auto& former : *known.handles)
      if (former.memory && gone(former.memory->device))
        mapped->forget(*former.memory);
  known = now;
}

} // namespace ringmaster
