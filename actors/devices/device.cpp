#include "actors/devices/device.hpp"

#include "actors/calls/answers.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringmaster {

namespace {

using device_pointer = device_actor::stateful_pointer<device_state>;

gpu_sim::DeviceMetadata metadata_of(const device_state& state) {
  gpu_sim::DeviceMetadata result;
  result.mutable_deviceid()->set_value(state.id.value);
  result.mutable_minmemaddr()->set_value(state.memory->min_address());
  result.mutable_maxmemaddr()->set_value(state.memory->max_address());
  return result;
}

} // namespace

void device_state::start(device_id given) {
  if (memory)
    return;
  id = given;
  auto file = options.memory_dir / fmt::format("device-{:x}.memory", id.value);
  auto opened = device_memory::open({id, file, min_address_of(id), options.memory_bytes});
  if (!opened) {
    self->quit(std::move(opened.error()));
    return;
  }
  memory = std::move(*opened);
  uint64_t stream = 0;
  for (uint32_t i = 0; i < std::max(options.streams, 1u); ++i)
    add_stream(false, stream);
  if (!options.coordinator)
    return;
  proto::DeviceReady ready;
  *ready.mutable_metadata() = metadata_of(*this);
  ready.set_node_id(options.node);
  device_handle handle{self->ctrl(), caf::actor_cast<caf::strong_actor_ptr>(streams.begin()->second)};
  self->send(options.coordinator, std::move(ready), std::move(handle));
}

caf::error device_state::not_joined() const {
  return make_error(errc::unknown_device, "the device has not joined the cluster yet");
}

uint64_t device_state::next_stream_id() {
  return (id.value << 40) + ++streams_made_; // a transfer takes one, too: 2^24 were used up in an hour
}

stream_actor device_state::add_stream(bool ends_when_idle, uint64_t& stream_number) {
  stream_number = next_stream_id();
  auto handle = self->spawn<caf::linked>(stream, options.streams_options, stream_id{stream_number}, memory,
                                         device_actor{self}, ends_when_idle);
  if (!ends_when_idle)
    streams.emplace(stream_number, handle);
  return handle;
}

caf::expected<stream_actor> device_state::stream_of(uint64_t stream_number) const {
  if (streams.empty())
    return not_joined();
  if (stream_number == 0)
    return streams.begin()->second;
  auto i = streams.find(stream_number);
  if (i != streams.end())
    return i->second;
  std::vector<uint64_t> known;
  for (auto& entry : streams)
    known.push_back(entry.first);
  return make_error(errc::unknown_stream, fmt::format("device 0x{:x} has no stream {}; it has {}", id.value, stream_number,
                                                      fmt::join(known, ", ")));
}

caf::expected<stream_actor> device_state::runner_for(bool has_stream, uint64_t stream_number, uint64_t& own) {
  own = 0;
  if (has_stream)
    return stream_of(stream_number);
  auto running = std::count_if(transfers.begin(), transfers.end(), [](auto& x) { return x.second.runner; });
  if (static_cast<uint64_t>(running) >= options.streams_max)
    return make_error(errc::out_of_memory, fmt::format("device 0x{:x} has {} transfers under way, its limit",
                                                       id.value, options.streams_max));
  return add_stream(true, own);
}

caf::expected<std::pair<device_id, device_handle>> device_state::member(uint64_t communicator,
                                                                        uint32_t rank) const {
  if (communicators.empty())
    return make_error(errc::unknown_communicator, fmt::format("device 0x{:x} is in no communicator", id.value));
  if (communicator == 0 && communicators.size() > 1)
    return make_error(errc::invalid_argument,
                      fmt::format("device 0x{:x} is in {} communicators: say which one's rank {} is meant", id.value,
                                  communicators.size(), rank));
  auto i = communicator == 0 ? communicators.begin() : communicators.find(communicator);
  if (i == communicators.end())
    return make_error(errc::unknown_communicator,
                      fmt::format("device 0x{:x} is not in communicator {}", id.value, communicator));
  auto& members = *i->second.members;
  auto& handles = *i->second.handles;
  if (rank >= handles.size())
    return make_error(errc::invalid_argument, fmt::format("communicator {} has ranks 0 to {}, not {}", i->first,
                                                          handles.size() - 1, rank));
  return std::make_pair(device_id{members.devices(static_cast<int>(rank)).deviceid().value()}, handles[rank]);
}

std::string device_state::inject(const proto::FaultRequest& x) {
  if (!proto::FaultRequest::Kind_IsValid(x.kind()))
    return fmt::format("fault kind {} is not one of this version's", static_cast<int>(x.kind()));
  if (x.at_step() || x.stream_id() != 0) {
    auto target = stream_of(x.stream_id());
    if (!target)
      return render(target.error());
    self->send(*target, x);
    return {};
  }
  if (x.kind() != proto::FaultRequest::KILL)
    for (auto& entry : streams)
      self->send(entry.second, x);
  else
    self->send(streams.begin()->second, x); // its death is ours
  if (x.kind() == proto::FaultRequest::HANG)
    hang(self);
  return {};
}

caf::result<proto::EventRecordResponse> device_state::record_event(const proto::EventRecordRequest& x) {
  auto target = stream_of(x.stream_id().value());
  if (!target)
    return refusal<proto::EventRecordResponse>(render(target.error()));
  auto& entry = events[x.event_id()];
  entry.latest = ++records_;
  entry.pending.insert(records_);
  return self->delegate(*target, x, records_);
}

caf::result<proto::EventWaitResponse> device_state::wait_event(const proto::EventWaitRequest& x) {
  auto target = stream_of(x.stream_id().value());
  if (!target)
    return refusal<proto::EventWaitResponse>(render(target.error()));
  auto i = events.find(x.event_id());
  if (i == events.end() || i->second.pending.count(i->second.latest) == 0)
    return verdict<proto::EventWaitResponse>({}); // never recorded, or made already
  i->second.waiters.emplace_back(i->second.latest, *target);
  return self->delegate(*target, x, i->second.latest);
}

void device_state::recorded(uint64_t number, uint64_t record) {
  auto i = events.find(number);
  if (i == events.end())
    return;
  auto& [latest, pending, waiters] = i->second;
  for (auto& waiter : waiters)
    if (waiter.first == record)
      self->send(waiter.second, atom::recorded_v, number, record);
  std::erase_if(waiters, [=](auto& waiter) { return waiter.first == record; });
  pending.erase(record);
  if (pending.empty())
    events.erase(i);
}

device_actor::behavior_type device(device_pointer self, device_options options) {
  auto& state = self->state;
  state.self = self;
  state.options = std::move(options);
  self->set_down_handler([&state](const caf::down_msg& x) { state.on_down(x); });
  if (state.options.id.value != 0) {
    state.start(state.options.id);
  } else {
    proto::DeviceJoinRequest join;
    join.set_node_id(state.options.node);
    join.set_wanted_id(state.options.wanted_id.value);
    self->request(state.options.coordinator, state.options.join_limit, std::move(join))
      .then([&state](const proto::DeviceJoinResponse& x) { state.start(device_id{x.device_id()}); },
            [self](const caf::error& problem) {
              self->quit(make_error(errc::timed_out, "the coordinator gave the device no id: " + render(problem)));
            });
  }
  return {
    [&state](const gpu_sim::GetDeviceMetadataRequest&) {
      gpu_sim::GetDeviceMetadataResponse result;
      if (!state.memory)
        return refusal<gpu_sim::GetDeviceMetadataResponse>(render(state.not_joined()));
      *result.mutable_metadata() = metadata_of(state);
      return result;
    },
    [&state](const gpu_sim::BeginSendRequest& x) { return state.begin_send(x); },
    [&state](const gpu_sim::BeginReceiveRequest& x) { return state.begin_receive(x); },
    [&state](const gpu_sim::DataChunk& x) -> caf::result<gpu_sim::StreamSendResponse> {
      auto i = state.transfers.find(x.streamid().value());
      if (i == state.transfers.end() || !i->second.runner)
        return verdict<gpu_sim::StreamSendResponse>(
          fmt::format("no receive is posted for transfer {} on device 0x{:x}", x.streamid().value(), state.id.value));
      return state.self->delegate(i->second.runner, x);
    },
    [&state](const gpu_sim::GetStreamStatusRequest& x) -> caf::result<gpu_sim::GetStreamStatusResponse> {
      auto i = state.transfers.find(x.streamid().value());
      if (i != state.transfers.end())
        return i->second.status;
      auto target = state.stream_of(x.streamid().value());
      if (target)
        return state.self->delegate(*target, x);
      auto result = refusal<gpu_sim::GetStreamStatusResponse>(render(target.error()));
      result.set_status(gpu_sim::FAILED);
      return result;
    },
    [&state](const gpu_sim::MemcpyRequest& x,
             const byte_block& block) -> caf::result<gpu_sim::MemcpyResponse, byte_block> {
      auto target = state.stream_of(x.onstream().value());
      if (!target)
        return {refusal<gpu_sim::MemcpyResponse>(render(target.error())), byte_block{}};
      return state.self->delegate(*target, x, block);
    },
    [&state](const proto::CopyRequest& x) -> caf::result<proto::CopyResponse> {
      auto target = state.stream_of(x.on_stream().value());
      if (!target)
        return refusal<proto::CopyResponse>(render(target.error()));
      return state.self->delegate(*target, x);
    },
    [&state](const proto::AllocateRequest& x) {
      if (!state.memory)
        return refusal<proto::AllocateResponse>(render(state.not_joined()));
      auto address = state.memory->allocate(x.bytes(), x.alignment() == 0 ? 256 : x.alignment());
      if (!address)
        return refusal<proto::AllocateResponse>(render(address.error()));
      proto::AllocateResponse result;
      result.mutable_address()->set_value(*address);
      return result;
    },
    [&state](const proto::FreeRequest& x) {
      if (!state.memory)
        return refusal<proto::FreeResponse>(render(state.not_joined()));
      auto problem = state.memory->free(x.address().value());
      return verdict<proto::FreeResponse>(problem ? render(problem) : "");
    },
    [&state](const proto::StreamCreateRequest&) {
      proto::StreamCreateResponse result;
      if (!state.memory)
        return refusal<proto::StreamCreateResponse>(render(state.not_joined()));
      if (state.streams.size() >= state.options.streams_max)
        result.set_error(fmt::format("device 0x{:x} has {} streams, its limit", state.id.value, state.streams.size()));
      uint64_t made = 0;
      if (result.error().empty())
        state.add_stream(false, made);
      result.mutable_stream_id()->set_value(made);
      return result;
    },
    [&state](const proto::StreamSynchronizeRequest& x) -> caf::result<proto::StreamSynchronizeResponse> {
      auto target = state.stream_of(x.stream_id().value());
      if (!target)
        return refusal<proto::StreamSynchronizeResponse>(render(target.error()));
      return state.self->delegate(*target, x);
    },
    [&state](const proto::EventRecordRequest& x) { return state.record_event(x); },
    [&state](const proto::EventWaitRequest& x) { return state.wait_event(x); },
    [&state](const proto::FaultRequest& x) { return verdict<proto::FaultResponse>(state.inject(x)); },
    [&state](const membership& x) { state.members_changed(x); },
    [&state](const offer& x) { state.route_offer(x); },
    [&state](const refused& x) { state.withdraw_offer(x); },
    [&state](const gpu_sim::StreamId& x, const gpu_sim::GetStreamStatusResponse& status) {
      state.end_transfer(x.value(), status);
    },
    [&state](atom::recorded, uint64_t event, uint64_t record) { state.recorded(event, record); },
    [&state](const proto::DeviceJoinResponse& x) { state.start(device_id{x.device_id()}); },
    [&state](atom::expire, uint64_t channel) { state.early.erase(channel); },
  };
}

} // namespace ringmaster
