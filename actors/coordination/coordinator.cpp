#include "actors/coordination/coordinator.hpp"

#include "actors/calls/request_limit.hpp"
#include "actors/coordination/coordinator_requests.hpp"
#include "runtime/text/quantity_text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

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
      limit += request_limit(x.timeout_ns()); // the communicator's own text comes first
    return ask_communicator<Response>(state, communicator_id{x.comm_id()}, x, limit);
  };
}

caf::result<proto::CommDestroyResponse> destroy(coordinator_state& state, const proto::CommDestroyRequest& x) {
  auto limit = state.options.request_limit + state.options.communicators.operation_limit; // streams may be given up
  communicator_id id{x.comm_id()};
  auto promise = state.self->make_response_promise<proto::CommDestroyResponse>();
  const bool is_there = state.communicators.find(id) != nullptr;
  ask_communicator_then<proto::CommDestroyResponse>(
    state, id, x, limit,
    [&state, id, promise](proto::CommDestroyResponse& y) mutable {
      state.communicator_ended(id, {}); // before the client can ask for its devices
      promise.deliver(std::move(y));
    },
    [&state, id, promise, is_there](const caf::error& problem) mutable {
      bool ended = is_there && state.communicators.was_destroyed(id); // somebody else's wish came first
      promise.deliver(ended ? verdict<proto::CommDestroyResponse>(caf::none)
                            : refusal<proto::CommDestroyResponse>(problem));
    });
  return promise;
}

caf::result<proto::StreamSynchronizeResponse> synchronize(coordinator_state& state, device_id id,
                                                          proto::StreamSynchronizeRequest x) {
  if (x.timeout_ns() == 0)
    x.set_timeout_ns(static_cast<uint64_t>(state.options.request_limit.count()));
  auto limit = state.options.request_limit + request_limit(x.timeout_ns()); // the stream's own text comes first
  return ask_device<proto::StreamSynchronizeResponse>(state, id, x, limit);
}

template <class Response, class Request>
auto journal_call(coordinator_state& state) {
  return [&state](const Request& x) -> caf::result<Response> {
    if (!state.options.journal)
      return refusal<Response>(errc::refused, "this cluster keeps no journal");
    auto promise = state.self->make_response_promise<Response>();
    ask_then<Response>(state, state.journal_calls, the_journal{}, state.options.journal, errc::io_error,
                       state.options.request_limit, deliver_to(promise, pass_on), refuse_by(promise), x);
    return promise;
  };
}

} // namespace

void coordinator_state::start(coordinator_options opts) {
  options = std::move(opts);
  communicators = communicator_registry{options.communicators_max, options.ids};
  devices = device_registry{options.ids};
  meetings_ = shared_mailboxes{options.meet_bytes};
  copies = host_copies{options.host_copies_bytes_max};
  proto::Record record;
  record.mutable_coordinator_started()->set_pid(options.pid);
  journal(std::move(record));
  mark_ids();
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
  if (auto mark = options.ids->mark())
    journal(std::move(*mark));
}

void coordinator_state::on_down(const caf::down_msg& x) {
  std::erase_if(notices, [&](auto& notice) { return notice.second == x.source; });
  auto is_source = [&](const caf::strong_actor_ptr& ptr) { return ptr && ptr->address() == x.source; };
  bool left = !x.reason || x.reason == caf::exit_reason::user_shutdown;
  // Each ends its loop: the maps have changed.
  for (auto& [id, device] : devices.devices())
    if (is_source(device.handle.device))
      return device_gone(id, {cause_of_end(device.node, x.reason), left ? "" : "monitor", now_ns()});
  for (auto& [id, node] : devices.nodes())
    if (is_source(node.handle))
      return node_gone(id, x.reason, left);
  for (auto& [id, communicator] : communicators.alive())
    if (is_source(communicator.handle))
      return communicator_ended(id, x.reason);
  if (auto client = clients_.extract(x.source))
    client_gone(client.mapped(), x.reason ? render(x.reason) : "it has ended");
}

void coordinator_state::notice(const std::string& name_of_it, const caf::strong_actor_ptr& who) {
  if (!who)
    return;
  notices[name_of_it] = who->address();
  self->monitor(caf::actor_cast<caf::actor>(who));
}

caf::strong_actor_ptr coordinator_state::noticed(const std::string& name_of_it) const {
  auto found = notices.find(name_of_it);
  return found == notices.end() ? nullptr : caf::actor_cast<caf::strong_actor_ptr>(found->second);
}

caf::result<proto::NodeJoinResponse, caf::strong_actor_ptr> coordinator_state::let_in(
  const proto::NodeJoinRequest& x, const caf::strong_actor_ptr& node) {
  auto promise = self->make_response_promise<proto::NodeJoinResponse, caf::strong_actor_ptr>();
  promise.deliver(node_joined(x, node), caf::actor_cast<caf::strong_actor_ptr>(options.journal));
  introduce_nodes(); // it has been let in by then
  return promise;
}

proto::DeviceJoinResponse coordinator_state::new_device(const proto::DeviceJoinRequest& x) {
  proto::DeviceJoinResponse answer;
  mark_ids();
  answer.set_device_id(options.ids->new_device(device_id{x.wanted_id()}).value);
  if (x.wanted_id() != 0 && answer.device_id() != x.wanted_id())
    spdlog::warn("the id 0x{:x} that is wished for a device was given before, and none is given twice: it is 0x{:x}",
                 x.wanted_id(), answer.device_id());
  return answer;
}

void coordinator_state::expire_calls() {
  auto expire = [this](auto& calls) {
    calls.expire(self->clock().now(), make_error(caf::sec::request_timeout));
    keep_time(calls);
  };
  expire(device_calls);
  expire(communicator_calls);
  expire(journal_calls);
}

void coordinator_state::expire(uint64_t number) {
  if (spares_.has(number))
    return act(number, spares_.expired(number, spare_wanted(number)));
  if (drain_calls_.count(number) != 0)
    return drain_expired(number);
  if (auto call = init_calls_.find(number); call != init_calls_.end()) {
    call->second.expired = true;
    return call->second.asked == 0 ? choose(number) : void();
  }
  if (auto waiter = info_waiters_.extract(number))
    return deliver_info(waiter.mapped().request, waiter.mapped().promise);
  if (auto waiter = waiting_ranks_.find(number); waiter != waiting_ranks_.end())
    if (auto late = ranks_.expired(number, duration_text(waiter->second.limit)))
      answer_ranks(late->to, {}, late->problem);
}

caf::error coordinator_state::check_waiting() const {
  if (calling_peer == request_peer{})
    return caf::none;
  auto count_of_peer = [this](const auto& waiting) {
    return std::ranges::count_if(waiting, [this](auto& x) { return x.second.peer == calling_peer; });
  };
  const auto waiting = count_of_peer(info_waiters_) + count_of_peer(init_calls_) + count_of_peer(drain_calls_)
                       + count_of_peer(waiting_ranks_);
  if (static_cast<size_t>(waiting) < waiting_max)
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
    [&state](const CommInitRequest& x) { return state.comm_init(x); },
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
      state.drop_rank_calls(communicator_id{x.comm_id()});
      return ask_communicator<proto::CommAbortResponse>(state, communicator_id{x.comm_id()}, x,
                                                        state.options.request_limit);
    },
    [&state](const proto::CommDestroyRequest& x) { return destroy(state, x); },
    [&state](const proto::CommDeriveRequest& x) { return state.derive(x); },
    [&state](proto::RankCall& x) { return rank_call(state, x); },
    [&state](const proto::RendezvousRequest& x) { return state.rendezvous(x); },
    [&state](const proto::FinalizeRequest& x) { return state.finalize(x); },
    [&state](const proto::RankAbsentRequest& x) { return state.rank_absent(x); },
    [&state](const proto::MeetingRequest& x) { return state.meeting(x); },
    [&state](const proto::MetReport& x) { state.met(x); },
    [&state](const proto::ClusterInfoRequest& x) { return state.wait_for_devices(x); },
    [&state](const proto::DrainRequest& x) { return state.drain(x); },
    [&state](const proto::ClusterStatusRequest&) { return state.cluster_status(); },
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
    [&state](const std::string& name_of_it, const caf::strong_actor_ptr& who) { state.notice(name_of_it, who); },
    [&state](const std::string& name_of_it) { return state.noticed(name_of_it); },
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
    [&state](const DeviceId& id, const proto::AllocateRequest& x) { return allocate(state, device_id{id.value()}, x); },
    [&state](const DeviceId& id, const proto::FreeRequest& x) { return free(state, device_id{id.value()}, x); },
    device_call<proto::StreamCreateResponse, proto::StreamCreateRequest>(state),
    [&state](const DeviceId& id, const proto::StreamSynchronizeRequest& x) {
      return synchronize(state, device_id{id.value()}, x);
    },
    device_call<proto::EventRecordResponse, proto::EventRecordRequest>(state),
    device_call<proto::EventWaitResponse, proto::EventWaitRequest>(state),
    [&state](const DeviceId& id, const proto::FaultRequest& x) {
      // One whose process stands still has it when it goes on: whoever asked is told so soon.
      constexpr auto soon = std::chrono::seconds{2};
      state.drop_rank_calls(device_id{id.value()});
      return ask_device<proto::FaultResponse>(state, device_id{id.value()}, x,
                                              std::min<caf::timespan>(soon, state.options.request_limit));
    },
    [&state](const proto::NodeJoinRequest& x, const caf::strong_actor_ptr& node) { return state.let_in(x, node); },
    [&state](const proto::DeviceJoinRequest& x) { return state.new_device(x); },
    [&state](const proto::DeviceReady& x, const device_handle& handle) { state.device_ready(x, handle); },
    [&state](const proto::NodeApart& x) { state.nodes_apart(x); },
    [&state](const proto::MemberLost& x) { state.member_lost(x); },
    [&state](const proto::SpareRequest& x) { return state.spare(x); },
    [&state](const proto::OutputsWritten& x) { state.outputs_written(x); },
    [&state](atom::tick, uint64_t waiter) { state.tell_missing_ranks(waiter); },
    [&state](atom::expire) { state.expire_calls(); },
    [&state](atom::expire, uint64_t waiter) { state.expire(waiter); },
  };
}

} // namespace ringmaster
