#include "actors/devices/device.hpp"

#include "actors/calls/answers.hpp"
#include "actors/calls/request_limit.hpp"
#include "actors/links/link_hub.hpp"
#include "messages/received_handles.hpp"
#include "messages/try.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ringmaster {

caf::error device_faults::inject(const proto::FaultRequest& x) {
  auto self = device_.self;
  if (!proto::FaultRequest::Kind_IsValid(x.kind()))
    return make_error(errc::invalid_argument,
                      fmt::format("fault kind {} is not one of this version's", static_cast<int>(x.kind())));
  if (x.at_step() || x.stream_id() != 0) {
    TRY(target, device_.stream_of(stream_id{x.stream_id()}));
    self->send(*target, x);
    return caf::none;
  }
  if (device_.streams.empty())
    return device_.not_joined();
  if (x.kind() == proto::FaultRequest::KILL) {
    self->send(device_.streams.begin()->second, x); // the death of a stream is the device's
    return caf::none;
  }
  for (auto& entry : device_.streams)
    self->send(entry.second, x);
  if (x.kind() == proto::FaultRequest::HANG)
    hang(self, request_limit(x.delay_ns()), [] {});
  return caf::none;
}

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

device_state::~device_state() {
  if (memory)
    memory->remove_file();
}

void device_state::start(device_id given) {
  if (memory)
    return;
  id = given;
  if (options.keep_memory_dir)
    if (auto problem = options.keep_memory_dir())
      return self->quit(std::move(problem));
  auto& ours = options.streams_options;
  auto file = memory_file(options.memory_dir, id);
  auto opened = device_memory::open({id, file, min_address_of(id), options.memory_bytes,
                                     ours.link ? ours.link->place() : link_place{}});
  if (!opened) {
    self->quit(std::move(opened.error()));
    return;
  }
  memory = std::move(*opened);
  stream_id stream;
  for (uint32_t i = 0; i < std::max(options.streams, 1u); ++i)
    add_stream(false, stream);
  if (!options.coordinator)
    return;
  proto::DeviceReady ready;
  *ready.mutable_metadata() = metadata_of(*this);
  ready.set_node_id(options.node.value);
  device_handle handle{self->ctrl(), caf::actor_cast<caf::strong_actor_ptr>(streams.begin()->second),
                       caf::actor_cast<caf::strong_actor_ptr>(options.relay), memory->place()};
  if (options.relay)
    self->send(options.relay, ready, handle);
  self->send(options.coordinator, std::move(ready), std::move(handle));
}

caf::error device_state::not_joined() const {
  return make_error(errc::unknown_device, "the device has not joined the cluster yet");
}

stream_id device_state::next_stream_id() {
  return stream_id{(id.value << 40) + ++streams_made_}; // a transfer takes one, too: 2^24 were used up in an hour
}

stream_actor device_state::add_stream(bool ends_when_idle, stream_id& made) {
  made = next_stream_id();
  auto handle = self->spawn<caf::linked>(stream, options.streams_options, made, memory, device_actor{self},
                                         ends_when_idle);
  if (!ends_when_idle)
    streams.emplace(made, handle);
  return handle;
}

caf::expected<stream_actor> device_state::stream_of(stream_id wanted) const {
  if (streams.empty())
    return not_joined();
  if (wanted.value == 0)
    return streams.begin()->second;
  auto i = streams.find(wanted);
  if (i != streams.end())
    return i->second;
  std::vector<stream_id> known;
  for (auto& entry : streams)
    known.push_back(entry.first);
  return make_error(errc::unknown_stream,
                    fmt::format("device 0x{:x} has no stream {}; it has {}", id, wanted, fmt::join(known, ", ")));
}

caf::expected<stream_actor> device_state::runner_for(bool has_stream, stream_id wanted, stream_id& own) {
  own = {};
  if (has_stream)
    return stream_of(wanted);
  auto running = std::count_if(transfers.begin(), transfers.end(), [](auto& x) { return x.second.runner; });
  if (static_cast<uint64_t>(running) >= options.streams_max)
    return make_error(errc::too_many,
                      fmt::format("device 0x{:x} has {} transfers under way, its limit", id, options.streams_max));
  return add_stream(true, own);
}

caf::expected<std::pair<device_id, device_handle>> device_state::member(communicator_id communicator,
                                                                        uint32_t rank) const {
  if (communicators.empty())
    return make_error(errc::unknown_communicator, fmt::format("device 0x{:x} is in no communicator", id));
  if (communicator.value == 0 && communicators.size() > 1)
    return make_error(errc::invalid_argument,
                      fmt::format("device 0x{:x} is in {} communicators: say which one's rank {} is meant", id,
                                  communicators.size(), rank));
  auto i = communicator.value == 0 ? communicators.begin() : communicators.find(communicator);
  if (i == communicators.end())
    return make_error(errc::unknown_communicator,
                      fmt::format("device 0x{:x} is not in communicator {}", id, communicator));
  auto& members = *i->second.members;
  auto& handles = *i->second.handles;
  if (rank >= handles.size())
    return make_error(errc::invalid_argument,
                      fmt::format("communicator {} has ranks 0 to {}, not {}", i->first, handles.size() - 1, rank));
  device_id peer{members.devices(static_cast<int>(rank)).deviceid().value()};
  if (is_lost(handles[rank].device))
    return make_error(errc::device_lost,
                      fmt::format("rank {} of communicator {}, device 0x{:x}, is lost", rank, i->first, peer));
  return std::make_pair(peer, handles[rank]);
}

caf::result<proto::EventRecordResponse> device_state::record_event(const proto::EventRecordRequest& x) {
  auto target = stream_of(stream_id{x.stream_id().value()});
  if (!target)
    return refusal<proto::EventRecordResponse>(target.error());
  auto& entry = events[event_id{x.event_id()}];
  entry.latest = ++records_;
  entry.pending.insert(records_);
  return self->delegate(*target, x, records_);
}

caf::result<proto::EventWaitResponse> device_state::wait_event(const proto::EventWaitRequest& x) {
  auto target = stream_of(stream_id{x.stream_id().value()});
  if (!target)
    return refusal<proto::EventWaitResponse>(target.error());
  auto i = events.find(event_id{x.event_id()});
  if (i == events.end() || i->second.pending.count(i->second.latest) == 0)
    return verdict<proto::EventWaitResponse>(caf::none); // never recorded, or made already
  i->second.waiters.emplace_back(i->second.latest, *target);
  return self->delegate(*target, x, i->second.latest);
}

void device_state::recorded(event_id event, uint64_t record) {
  auto i = events.find(event);
  if (i == events.end())
    return;
  auto& [latest, pending, waiters] = i->second;
  for (auto& waiter : waiters)
    if (waiter.first == record)
      self->send(waiter.second, atom::recorded_v, event.value, record);
  std::erase_if(waiters, [=](auto& waiter) { return waiter.first == record; });
  pending.erase(record);
  if (pending.empty())
    events.erase(i);
}

namespace {

template <class Request>
answered_calls::key id_of_call(const Request& x) {
  if constexpr (requires { x.callnumber(); })
    return {{x.caller(), x.callnumber()}, Request::descriptor()};
  else
    return {{x.caller(), x.call_number()}, Request::descriptor()};
}

/// Carries the call out, unless it is sent again: then the answer is that of before.
template <class Request, class Run>
auto once(device_state& state, const Request& x, Run run) -> decltype(run()) {
  using response = decltype(run());
  if (x.caller() == 0)
    return run();
  const auto id = id_of_call(x);
  if (const auto* known = state.calls.answer_of(id))
    return known->template get_as<response>(0);
  auto answer = run();
  state.calls.end(id, caf::make_message(answer));
  return answer;
}

/// The same for a call that a stream answers.
template <class... Response, class Request, class... Bulk>
caf::result<Response...> once_by(device_state& state, const stream_actor& target, const Request& x,
                                 const Bulk&... bulk) {
  if (x.caller() == 0)
    return state.self->delegate(target, x, bulk...);
  const auto id = id_of_call(x);
  auto promise = state.self->make_response_promise<Response...>();
  const bool is_new = state.calls.begin(id, [promise](const caf::message& answer, const caf::error& problem) mutable {
    if (problem)
      promise.deliver(problem);
    else
      [&]<size_t... I>(std::index_sequence<I...>) {
        promise.deliver(Response{answer.get_as<Response>(I)}...);
      }
    (std::index_sequence_for<Response...>{});
  });
  if (is_new)
    state.self->request(target, caf::infinite, x, bulk...)
      .then([&state, id](Response&... y) { state.calls.end(id, caf::make_message(std::move(y)...)); },
            [&state, id](const caf::error& problem) { state.calls.fail(id, problem); });
  return promise;
}

gpu_sim::GetDeviceMetadataResponse tell_metadata(const device_state& state) {
  if (!state.memory)
    return refusal<gpu_sim::GetDeviceMetadataResponse>(state.not_joined());
  gpu_sim::GetDeviceMetadataResponse result;
  *result.mutable_metadata() = metadata_of(state);
  return result;
}

caf::result<gpu_sim::StreamSendResponse> take_chunk(device_state& state, const gpu_sim::DataChunk& x) {
  auto i = state.transfers.find(stream_id{x.streamid().value()});
  if (i == state.transfers.end() || !i->second.runner)
    return refusal<gpu_sim::StreamSendResponse>(errc::unknown_stream,
                                                fmt::format("no receive is posted for transfer {} on device 0x{:x}",
                                                            x.streamid().value(), state.id));
  return once_by<gpu_sim::StreamSendResponse>(state, i->second.runner, x);
}

/// That stream answers; 0: the default one.
template <class Response, class Request>
caf::result<Response> by_stream(device_state& state, uint64_t stream, const Request& x) {
  auto target = state.stream_of(stream_id{stream});
  if (!target)
    return refusal<Response>(target.error());
  return state.self->delegate(*target, x);
}

proto::AllocateResponse allocate(device_state& state, const proto::AllocateRequest& x) {
  if (!state.memory)
    return refusal<proto::AllocateResponse>(state.not_joined());
  auto address = state.memory->allocate(x.bytes(), x.alignment() == 0 ? 256 : x.alignment());
  if (!address)
    return refusal<proto::AllocateResponse>(address.error());
  if (!x.maker().empty() || !x.owner().empty()) {
    auto& made = state.allocations[*address];
    made.set_address(*address);
    made.set_bytes(x.bytes());
    made.set_maker(x.maker());
    made.set_owner(x.owner());
  }
  proto::AllocateResponse result;
  result.mutable_address()->set_value(*address);
  return result;
}

proto::FreeResponse free(device_state& state, const proto::FreeRequest& x) {
  if (!state.memory)
    return refusal<proto::FreeResponse>(state.not_joined());
  const auto problem = state.memory->free(x.address().value());
  if (!problem)
    state.allocations.erase(x.address().value());
  return verdict<proto::FreeResponse>(problem);
}

proto::StreamCreateResponse create_stream(device_state& state) {
  if (!state.memory)
    return refusal<proto::StreamCreateResponse>(state.not_joined());
  if (state.streams.size() >= state.options.streams_max)
    return refusal<proto::StreamCreateResponse>(errc::too_many, fmt::format("device 0x{:x} has {} streams, its limit",
                                                                            state.id, state.streams.size()));
  stream_id made;
  state.add_stream(false, made);
  proto::StreamCreateResponse result;
  result.mutable_stream_id()->set_value(made.value);
  return result;
}

caf::result<proto::Recalled> recall(device_state& state, const proto::RecallRequest& x) {
  if (state.streams.empty())
    return refusal<proto::Recalled>(state.not_joined());
  if (x.incarnation() < state.incarnation)
    return refusal<proto::Recalled>(
      make_error(errc::refused, fmt::format("device 0x{:x} obeys a coordinator of incarnation {}, and this one's is {}",
                                            state.id, state.incarnation, x.incarnation())));
  state.incarnation = x.incarnation();
  proto::Recalled known;
  known.set_device_id(state.id.value);
  for (auto& [id, of_it] : state.communicators) {
    auto& its = *known.add_communicators();
    its.set_comm_id(id.value);
    its.set_members_epoch(of_it.members->epoch());
    *its.mutable_members() = of_it.members->devices();
  }
  for (auto& [address, of_client] : state.allocations)
    *known.add_allocations() = of_client;
  return state.self->delegate(state.streams.begin()->second, x, std::move(known));
}

} // namespace

device_actor::behavior_type device(device_pointer self, device_options options) {
  auto& state = self->state;
  state.self = self;
  state.options = std::move(options);
  self->set_down_handler([&state](const caf::down_msg& x) { state.on_down(x); });
  if (state.options.id.value != 0) {
    state.start(state.options.id);
  } else {
    proto::DeviceJoinRequest join;
    join.set_node_id(state.options.node.value);
    join.set_wanted_id(state.options.wanted_id.value);
    self->request(state.options.coordinator, state.options.join_limit, std::move(join))
      .then([&state](const proto::DeviceJoinResponse& x) { state.start(device_id{x.device_id()}); },
            [self](const caf::error& problem) {
              self->quit(make_error(errc::timed_out, "the coordinator gave the device no id: " + render(problem)));
            });
  }
  return {
    [&state](const gpu_sim::GetDeviceMetadataRequest&) { return tell_metadata(state); },
    [&state](const gpu_sim::BeginSendRequest& x) { return once(state, x, [&] { return state.begin_send(x); }); },
    [&state](const gpu_sim::BeginReceiveRequest& x) { return once(state, x, [&] { return state.begin_receive(x); }); },
    [&state](const gpu_sim::DataChunk& x) { return take_chunk(state, x); },
    [&state](const gpu_sim::GetStreamStatusRequest& x) -> caf::result<gpu_sim::GetStreamStatusResponse> {
      auto transfer = state.transfers.find(stream_id{x.streamid().value()});
      return transfer != state.transfers.end()
               ? caf::result<gpu_sim::GetStreamStatusResponse>{transfer->second.status}
               : by_stream<gpu_sim::GetStreamStatusResponse>(state, x.streamid().value(), x);
    },
    [&state](const gpu_sim::MemcpyRequest& x,
             const byte_block& block) -> caf::result<gpu_sim::MemcpyResponse, byte_block> {
      auto target = state.stream_of(stream_id{x.onstream().value()});
      if (!target)
        return {refusal<gpu_sim::MemcpyResponse>(target.error()), byte_block{}};
      if (x.has_devicetohost())
        return state.self->delegate(*target, x, block); // to read again does no harm
      return once_by<gpu_sim::MemcpyResponse, byte_block>(state, *target, x, block);
    },
    [&state](const proto::CopyRequest& x) -> caf::result<proto::CopyResponse> {
      auto target = state.stream_of(stream_id{x.on_stream().value()});
      if (!target)
        return refusal<proto::CopyResponse>(target.error());
      return once_by<proto::CopyResponse>(state, *target, x);
    },
    [&state](const proto::AllocateRequest& x) { return once(state, x, [&] { return allocate(state, x); }); },
    [&state](const proto::FreeRequest& x) { return once(state, x, [&] { return free(state, x); }); },
    [&state](const proto::StreamCreateRequest& x) { return once(state, x, [&] { return create_stream(state); }); },
    [&state](const proto::StreamSynchronizeRequest& x) {
      return by_stream<proto::StreamSynchronizeResponse>(state, x.stream_id().value(), x);
    },
    [&state](const proto::EventRecordRequest& x) { return state.record_event(x); },
    [&state](const proto::EventWaitRequest& x) { return state.wait_event(x); },
    [&state](const proto::FaultRequest& x) { return verdict<proto::FaultResponse>(state.faults.inject(x)); },
    [&state](const proto::RecallRequest& x) { return recall(state, x); },
    [&state](const membership& x) { state.members_changed(x); },
    [&state](const offer& x) { state.route_offer(x); },
    [&state](const refused& x) { state.withdraw_offer(x); },
    [&state](const gpu_sim::StreamId& x, const gpu_sim::GetStreamStatusResponse& status) {
      state.end_transfer(stream_id{x.value()}, status);
    },
    [&state](atom::recorded, uint64_t event, uint64_t record) { state.recorded(event_id{event}, record); },
    [&state](const proto::DeviceJoinResponse& x) { state.start(device_id{x.device_id()}); },
    [&state](atom::expire, uint64_t transfer) { state.early.erase(stream_id{transfer}); },
  };
}

} // namespace ringmaster
