#include "actors/coordination/coordinator.hpp"

#include "actors/calls/request_limit.hpp"
#include "actors/coordination/communicator_creation.hpp"
#include "actors/coordination/coordinator_requests.hpp"
#include "messages/try.hpp"
#include "runtime/logging/log.hpp"

#include <algorithm>
#include <caf/send.hpp>
#include <fmt/format.h>

namespace ringmaster {

namespace {

using coordinator_pointer = coordinator_actor::stateful_pointer<coordinator_state>;

template <class Response, class Request>
auto device_call(coordinator_state& state) {
  return [&state](const gpu_sim::DeviceId& id, const Request& x) {
    return ask_device<Response>(state, device_id{id.value()}, x, state.options.request_limit);
  };
}

template <class Response, class Request>
auto status_or_group_call(coordinator_state& state) {
  return [&state](const Request& x) {
    return ask_communicator<Response>(state, communicator_id{x.commid()}, x, state.options.request_limit);
  };
}

template <class Response, class Request>
auto communicator_call(coordinator_state& state) {
  return [&state](const Request& x) {
    auto limit = state.options.request_limit;
    if constexpr (std::is_same_v<Request, proto::CommWaitRequest>)
      limit += request_limit(x.timeout_ns()); // the communicator's own error comes first
    return ask_communicator<Response>(state, communicator_id{x.comm_id()}, x, limit);
  };
}

caf::result<proto::CommDestroyResponse> destroy(coordinator_state& state, const proto::CommDestroyRequest& x) {
  auto limit = state.options.request_limit
               + state.options.communicators.operation_limit; // for streams that are given up
  communicator_id id{x.comm_id()};
  auto promise = state.self->make_response_promise<proto::CommDestroyResponse>();
  const bool is_there = state.communicators.find(id) != nullptr;
  ask_communicator_then<proto::CommDestroyResponse>(
    state, id, x, limit,
    [&state, id, promise](proto::CommDestroyResponse& y) mutable {
      state.communicator_ended(id, {}); // before the client can ask for its devices
      state.metadata.when_stored([promise, answer = std::move(y)]() mutable { promise.deliver(std::move(answer)); });
    },
    [&state, id, promise, is_there](const caf::error& problem) mutable {
      // Another client's request came first, or the same one to the coordinator before this one.
      bool ended = (is_there || state.options.identity.incarnation() > 1) && state.communicators.was_destroyed(id);
      promise.deliver(ended ? verdict<proto::CommDestroyResponse>(caf::none)
                            : refusal<proto::CommDestroyResponse>(problem));
    });
  return promise;
}

caf::result<proto::StreamSynchronizeResponse> synchronize(coordinator_state& state, device_id id,
                                                          proto::StreamSynchronizeRequest x) {
  if (x.timeout_ns() == 0)
    x.set_timeout_ns(static_cast<uint64_t>(state.options.request_limit.count()));
  auto limit = state.options.request_limit + request_limit(x.timeout_ns()); // the stream's own error comes first
  return ask_device<proto::StreamSynchronizeResponse>(state, id, x, limit);
}

template <class Response, class Request>
auto journal_call(coordinator_state& state) {
  return [&state](const Request& x) -> caf::result<Response> {
    if (!state.options.journal)
      return refusal<Response>(errc::refused, "this cluster keeps no journal");
    auto promise = state.self->make_response_promise<Response>();
    ask_then<Response>(state, state.calls.journal, the_journal{}, state.options.journal, errc::io_error,
                       state.options.request_limit, deliver_to(promise, pass_on), refuse_by(promise), x);
    return promise;
  };
}

} // namespace

void coordinator_state::start(coordinator_options opts) {
  options = std::move(opts);
  communicators = communicator_registry{options.communicators_max, options.ids};
  devices = device_registry{options.ids};
  mailboxes.start(options.meet_bytes);
  if (options.store != nullptr && options.store->is_shared())
    options.communicators.leads = [store = options.store] { return store->holds(); };
  copies = host_copies{options.host_copies_bytes_max};
  proto::Record record;
  record.mutable_coordinator_started()->set_pid(options.pid);
  journal(std::move(record));
  metadata.start(options.store, options.writer);
  mark_ids();
  metadata.put(metadata_key::ids,
               options.ids->latest_mark().ids_reserved()); // which the journal may have had before this
  recovery.start(std::move(options.found));
  liveness.start();
  self->attach_functor([watch = options.silence_watch] {
    caf::anon_send_exit(watch, caf::exit_reason::user_shutdown);
  });
  self->attach_functor([ids = options.ids, log = options.journal, wall = options.clock, &steady = self->clock()] {
    if (!log)
      return;
    auto last = ids->last_mark();
    last.set_time_ns(wall.unix_ns(steady.now()));
    caf::anon_send(log, std::move(last));
  });
}

void coordinator_state::mark_ids() {
  auto mark = options.ids->mark();
  if (!mark)
    return;
  metadata.put(metadata_key::ids, mark->ids_reserved());
  journal(std::move(*mark));
}

void coordinator_state::on_down(const caf::down_msg& x) {
  clients.withdraw_names(x.source);
  if (members.ended(x))
    return;
  for (auto& [id, communicator] : communicators.alive())
    if (communicator.handle && communicator.handle->address() == x.source)
      return communicator_ended(id, x.reason); // the map has changed
  clients.ended(x);
}

void coordinator_state::store_communicator(communicator_id id,
                                           const std::function<void(proto::StoredCommunicator&)>& change) {
  auto* stored = communicators.stored(id);
  if (stored == nullptr || !metadata.is_kept())
    return;
  change(*stored);
  metadata.put(metadata_key::of(id), *stored);
}

caf::expected<communicator_actor> coordinator_state::communicator_of(communicator_id id) const {
  TRY(known, communicators.known(id));
  return caf::actor_cast<communicator_actor>((*known)->handle);
}

void coordinator_state::communicator_ended(communicator_id id, const caf::error& reason) {
  auto ended = communicators.ended(id, reason);
  if (!ended)
    return;
  metadata.erase(metadata_key::of(id));
  mailboxes.communicator_ended(id);
  clients.communicator_ended(id);
  access.ended(id);
  auto left = devices.leave(id);
  for (auto device : ended->lost)
    if (!communicators.inputs_wanted(device))
      copies.forget(device);
  if (reason)
    communicator_failed(id, reason, left);
  calls.communicators.gone(id, communicators.known(id).error());
  devices_freed();
}

void coordinator_state::communicator_failed(communicator_id id, const caf::error& reason, const device_ids& left) {
  log_error({.communicator = id.value}, "communicator {} has failed: {}", id, render(reason));
  proto::ClusterInfo::Gone gone;
  gone.set_what(proto::ClusterInfo::Gone::COMMUNICATOR);
  gone.set_id(id.value);
  gone.set_cause(render(reason));
  members.note_departure(std::move(gone));
  stop_streams_of(id, left); // its commands would block them for ever
}

void coordinator_state::stop_streams_of(communicator_id id, const device_ids& left) {
  // The answers do not matter.
  proto::Quiesce stop;
  stop.set_comm_id(id.value);
  stop.set_epoch(UINT64_MAX);
  stop.set_forget(true);
  proto::Members nobody;
  nobody.set_comm_id(id.value);
  for (auto member : left) {
    auto& handle = devices.find(member)->handle;
    caf::anon_send(caf::actor_cast<stream_actor>(handle.stream), stop);
    caf::anon_send(caf::actor_cast<device_actor>(handle.device), membership::of(nobody, {}));
  }
}

void coordinator_state::place_filled(device_id device, communicator_id communicator) {
  communicators.place_filled(device, communicator);
  if (!communicators.inputs_wanted(device))
    copies.forget(device);
}

void coordinator_state::devices_freed() {
  spares.serve();
  drains.serve();
}

bool coordinator_state::may_replace(device_id id) const {
  auto device = devices.find(id);
  return device != nullptr && communicators.all_replace(device->communicators);
}

void coordinator_state::will_change(device_id id, uint64_t address, uint64_t bytes) {
  auto device = devices.find(id);
  if (device != nullptr && within(device->metadata, address, bytes))
    copies.will_change(id, address, bytes);
}

void coordinator_state::look_again() {
  metadata.look_after();
  if (options.communicators.leads) // they may have held messages back while it was in doubt that this one leads
    for (auto& x : communicators.alive())
      self->send(caf::actor_cast<communicator_actor>(x.second.handle), atom::tick_v);
}

void coordinator_state::expire_calls() {
  auto expire_those = [this](auto& of) {
    of.expire(self->clock().now(), make_error(caf::sec::request_timeout));
    keep_time(of);
  };
  expire_those(calls.devices);
  expire_those(calls.communicators);
  expire_those(calls.journal);
}

void coordinator_state::expire(uint64_t number) {
  // Each object knows its own numbers. The request may have been answered meanwhile: then none knows it.
  (void)(liveness.tick(number) || metadata.expire(number) || recovery.expire(number) || spares.expire(number)
         || drains.expire(number) || inits.expire(number) || info.expire(number) || ranks.expire(number));
}

caf::error coordinator_state::check_waiting() const {
  if (calling_peer == request_peer{})
    return caf::none;
  const auto waiting = info.waiting_of(calling_peer) + inits.waiting_of(calling_peer) + drains.waiting_of(calling_peer)
                       + ranks.waiting_of(calling_peer);
  if (waiting < waiting_max)
    return caf::none;
  return make_error(errc::too_many,
                    fmt::format("{} requests of this client wait for ranks, devices or nodes, its limit: "
                                "ask again when some have been answered",
                                waiting));
}

void coordinator_state::journal(proto::Record record) {
  if (!options.journal)
    return;
  record.set_time_ns(now_ns());
  self->send(options.journal, std::move(record));
}

coordinator_actor::behavior_type coordinator(coordinator_pointer self, coordinator_options options) {
  auto& state = self->state;
  state.self = self;
  self->set_down_handler([&state](const caf::down_msg& x) { state.on_down(x); });
  state.start(std::move(options));
  using namespace gpu_sim;
  return {
    [&state](const CommInitRequest& x) { return state.inits.comm_init(x); },
    status_or_group_call<GetCommStatusResponse, GetCommStatusRequest>(state),
    status_or_group_call<GroupStartResponse, GroupStartRequest>(state),
    status_or_group_call<GroupEndResponse, GroupEndRequest>(state),
    [&state](const AllReduceRingRequest& x) { return all_reduce_ring(state, x); },
    [&state](const MemcpyRequest& x) { return copy_memory_within(state, x); },
    [&state](const MemcpyRequest& x, const byte_block& block) { return copy_memory(state, x, block); },
    [&state](proto::CollectiveRequest& x) { return collective(state, x); },
    [&state](proto::CollectiveRequests& x) { return collectives(state, x); },
    communicator_call<GetCommStatusResponse, proto::CommWaitRequest>(state),
    [&state](const proto::CommAbortRequest& x) {
      state.mailboxes.close(communicator_id{x.comm_id()});
      return ask_communicator<proto::CommAbortResponse>(state, communicator_id{x.comm_id()}, x,
                                                        state.options.request_limit);
    },
    [&state](const proto::CommDestroyRequest& x) { return destroy(state, x); },
    [&state](const proto::CommDeriveRequest& x) { return derive(state, x); },
    [&state](proto::RankCall& x) { return rank_call(state, x); },
    [&state](const proto::RendezvousRequest& x) { return state.ranks.rendezvous(x); },
    [&state](const proto::FinalizeRequest& x) { return state.ranks.finalize(x); },
    [&state](const proto::RankAbsentRequest& x) { return state.ranks.rank_absent(x); },
    [&state](const proto::MeetingRequest& x) { return state.mailboxes.open(x); },
    [&state](const proto::MetReport& x) { state.mailboxes.report(x); },
    [&state](const proto::ClusterInfoRequest& x) { return state.info.cluster_info(x); },
    [&state](const proto::DrainRequest& x) { return state.drains.drain(x); },
    [&state](const proto::ClusterStatusRequest&) { return state.info.cluster_status(); },
    journal_call<proto::JournalFlushResponse, proto::JournalFlushRequest>(state),
    journal_call<proto::JournalTailResponse, proto::JournalTailRequest>(state),
    [&state](const DeviceId& id) -> caf::result<device_handle> {
      auto found = state.devices.known(device_id{id.value()});
      return found ? caf::result<device_handle>{(*found)->handle} : caf::result<device_handle>{found.error()};
    },
    [&state](proto::TrainingStep& x) {
      proto::Record record;
      *record.mutable_training_step() = std::move(x);
      state.journal(std::move(record));
    },
    [&state](const std::string& name_of_it, const caf::strong_actor_ptr& who) {
      state.clients.publish(name_of_it, who);
    },
    [&state](const std::string& name_of_it) { return state.clients.find(name_of_it); },
    device_call<GetDeviceMetadataResponse, GetDeviceMetadataRequest>(state),
    device_call<BeginSendResponse, BeginSendRequest>(state),
    [&state](const DeviceId& id, const BeginReceiveRequest& x) {
      state.will_change(device_id{id.value()}, x.recvbuffaddr().value(), x.numbytes());
      return ask_device<BeginReceiveResponse>(state, device_id{id.value()}, x, state.options.request_limit);
    },
    device_call<StreamSendResponse, DataChunk>(state),
    device_call<GetStreamStatusResponse, GetStreamStatusRequest>(state),
    [&state](const DeviceId& id, const proto::CopyRequest& x) {
      state.will_change(device_id{id.value()}, x.destination().value(), x.bytes());
      return ask_device<proto::CopyResponse>(state, device_id{id.value()}, x, state.options.request_limit);
    },
    [&state](const DeviceId& id, proto::AllocateRequest& x) {
      return allocate(state, device_id{id.value()}, std::move(x));
    },
    [&state](const DeviceId& id, const proto::FreeRequest& x) { return free(state, device_id{id.value()}, x); },
    device_call<proto::StreamCreateResponse, proto::StreamCreateRequest>(state),
    [&state](const DeviceId& id, const proto::StreamSynchronizeRequest& x) {
      return synchronize(state, device_id{id.value()}, x);
    },
    device_call<proto::EventRecordResponse, proto::EventRecordRequest>(state),
    device_call<proto::EventWaitResponse, proto::EventWaitRequest>(state),
    [&state](const DeviceId& id, const proto::FaultRequest& x) {
      // A device whose process is stopped gets the fault when it continues: the client hears soon that it has not
      // answered.
      constexpr auto soon = std::chrono::seconds{2};
      state.mailboxes.close(device_id{id.value()});
      return ask_device<proto::FaultResponse>(state, device_id{id.value()}, x,
                                              std::min<caf::timespan>(soon, state.options.request_limit));
    },
    [&state](const proto::NodeJoinRequest& x, const caf::strong_actor_ptr& node) {
      return state.members.let_in(x, node);
    },
    [&state](const proto::NodeJoinRequest& x, const caf::strong_actor_ptr& node, const device_handles& devices) {
      return state.recovery.rejoin(x, node, devices);
    },
    [&state](const proto::GreetingRequest& x) { return state.recovery.greet(x); },
    [&state](const proto::ClientReturn& x) { return state.recovery.client_returned(x); },
    [&state](const proto::DeviceJoinRequest& x) { return state.members.new_device(x); },
    [&state](const proto::DeviceReady& x, const device_handle& handle) { state.members.device_ready(x, handle); },
    [&state](const proto::NodeApart& x) { state.members.nodes_disconnected(x); },
    [&state](const proto::ProgressReport& x) { state.liveness.on_report(x); },
    [&state](const proto::Progress& x) { state.liveness.on_progress(x); },
    [&state](const proto::MemberLost& x) { state.members.member_lost(x); },
    [&state](const proto::ProbeRequest& x) { return state.members.probe(x); },
    [&state](const proto::SpareRequest& x) { return state.spares.request(x); },
    [&state](const proto::OutputsWritten& x) {
      for (auto& range : x.ranges())
        state.copies.overwritten(device_id{range.device_id()}, range.address(), range.bytes());
    },
    [&state](atom::tick) { state.look_again(); },
    [&state](atom::tick, uint64_t waiter) { state.ranks.log_missing_ranks(waiter); },
    [&state](atom::expire) { state.expire_calls(); },
    [&state](atom::expire, uint64_t number) { state.expire(number); },
  };
}

} // namespace ringmaster
