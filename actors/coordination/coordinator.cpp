#include "actors/coordination/coordinator.hpp"

#include "actors/calls/answers.hpp"

#include "actors/calls/request_limit.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace ringmaster {

namespace {

using coordinator_pointer = coordinator_actor::stateful_pointer<coordinator_state>;

/// Why there is no answer. `gone`: what it means that whoever was asked has ended.
caf::error no_answer(const std::string& who, const caf::error& problem, caf::timespan limit,
                     errc gone = errc::device_lost) {
  if (problem == caf::sec::request_timeout)
    return make_error(errc::timed_out, fmt::format("{} did not answer within {:.1f} s", who,
                                                   std::chrono::duration<double>{limit}.count()));
  if (problem == caf::sec::request_receiver_down)
    return make_error(gone, who + " has ended");
  return make_error(gone, fmt::format("{} did not answer: {}", who, render(problem)));
}

caf::error no_answer(uint64_t device, const caf::error& problem, caf::timespan limit) {
  return no_answer(fmt::format("device 0x{:x}", device), problem, limit);
}

/// Nothing more is to be done with an answer.
constexpr auto pass_on = [](const auto&) {};

/// Asks a device for a client, within `limit`. If the device dies the client hears at once. `look` sees the answer first.
template <class Response, class Request, class Look = decltype(pass_on)>
caf::result<Response> ask_device(coordinator_state& state, uint64_t id, const Request& request, caf::timespan limit,
                                 Look look = pass_on) {
  auto device = state.device_of(id);
  if (!device)
    return refusal<Response>(device.error());
  auto promise = state.self->make_response_promise<Response>();
  auto call = state.note_call(**device, [promise](const std::string& text) mutable {
    promise.deliver(refusal<Response>(errc::device_lost, text));
  });
  auto handle = caf::actor_cast<device_actor>((*device)->handle.device);
  state.self->request(handle, limit, request)
    .then([&state, id, call, promise, look](Response& x) mutable {
            if (!state.call_ended(id, call))
              return;
            look(x);
            promise.deliver(std::move(x));
          },
          [&state, id, call, promise, limit](const caf::error& problem) mutable {
            if (state.call_ended(id, call))
              promise.deliver(refusal<Response>(no_answer(id, problem, limit)));
          });
  return promise;
}

caf::result<proto::AllocateResponse> allocate(coordinator_state& state, device_id id, const proto::AllocateRequest& x) {
  auto client = x.outlives_client() ? caf::actor_addr{} : state.calling_client();
  return ask_device<proto::AllocateResponse>(state, id.value, x, state.options.request_limit,
                                             [&state, id, client](const proto::AllocateResponse& y) {
                                               if (y.error().empty())
                                                 state.own(client, owned_range{id, y.address().value()});
                                             });
}

caf::result<proto::FreeResponse> free(coordinator_state& state, device_id id, const proto::FreeRequest& x) {
  return ask_device<proto::FreeResponse>(state, id.value, x, state.options.request_limit,
                                         [&state, range = owned_range{id, x.address().value()}](const proto::FreeResponse& y) {
                                           if (y.success())
                                             state.freed(range);
                                         });
}

template <class Response, class Request>
auto device_call(coordinator_state& state) {
  return [&state](const gpu_sim::DeviceId& id, const Request& x) {
    return ask_device<Response>(state, id.value(), x, state.options.request_limit);
  };
}

/// Passes a client's call on to its communicator.
template <class Response, class Request>
caf::result<Response> ask_communicator(coordinator_state& state, uint64_t id, const Request& x, caf::timespan limit) {
  auto target = state.communicator_of(id);
  if (!target)
    return refusal<Response>(target.error());
  auto promise = state.self->make_response_promise<Response>();
  state.self->request(*target, limit, x)
    .then([&state, id, promise](Response& y) mutable {
            if (std::is_same_v<Request, proto::CommDestroyRequest>)
              state.communicator_ended(id, {}); // before the client can ask for its devices
            promise.deliver(std::move(y));
          },
          [id, promise, limit](const caf::error& problem) mutable {
            promise.deliver(
              refusal<Response>(no_answer(fmt::format("communicator {}", id), problem, limit, errc::unknown_communicator)));
          });
  return promise;
}

template <class Response, class Request>
auto course_call(coordinator_state& state) {
  return [&state](const Request& x) {
    return ask_communicator<Response>(state, x.commid(), x, state.options.request_limit);
  };
}

template <class Response, class Request>
auto communicator_call(coordinator_state& state) {
  return [&state](const Request& x) {
    auto limit = state.options.request_limit;
    if constexpr (std::is_same_v<Request, proto::CommWaitRequest>)
      limit += request_limit(x.timeout_ns()); // the communicator's own text comes first
    if constexpr (std::is_same_v<Request, proto::CommDestroyRequest>)
      limit += state.options.communicators.operation_limit; // for streams that have to be given up
    return ask_communicator<Response>(state, x.comm_id(), x, limit);
  };
}

using memcpy_promise = caf::typed_response_promise<gpu_sim::MemcpyResponse, byte_block>;

/// Bytes within the message become bytes beside it.
byte_block take_bytes(gpu_sim::MemcpyRequest& x) {
  auto data = std::move(*x.mutable_hosttodevice()->mutable_hostsrcdata());
  x.mutable_hosttodevice()->clear_hostsrcdata();
  return byte_block::of(std::vector<char>(data.begin(), data.end()));
}

caf::result<gpu_sim::MemcpyResponse, byte_block> copy_memory(coordinator_state& state, gpu_sim::MemcpyRequest x,
                                                             byte_block block) {
  if (x.has_hosttodevice() && block.size() == 0)
    block = take_bytes(x);
  if (x.either_case() == gpu_sim::MemcpyRequest::EITHER_NOT_SET)
    return {refusal<gpu_sim::MemcpyResponse>(errc::invalid_argument, "Memcpy names neither hostToDevice nor deviceToHost"),
            byte_block{}};
  auto id = x.has_hosttodevice() ? x.hosttodevice().dstdeviceid().value() : x.devicetohost().srcdeviceid().value();
  auto device = state.device_of(id);
  if (!device)
    return {refusal<gpu_sim::MemcpyResponse>(device.error()), byte_block{}};
  auto promise = state.self->make_response_promise<gpu_sim::MemcpyResponse, byte_block>();
  auto call = state.note_call(**device, [promise](const std::string& text) mutable {
    promise.deliver(refusal<gpu_sim::MemcpyResponse>(errc::device_lost, text), byte_block{});
  });
  auto to = x.hosttodevice().dstmemaddr().value();
  uint64_t number = 0;
  if (x.has_hosttodevice() && within((*device)->metadata, to, block.size())) {
    if (state.may_replace(id))
      number = state.copies.copying(device_id{id}, to, block.size());
    else
      state.copies.will_change(device_id{id}, to, block.size());
  }
  state.self->request(caf::actor_cast<device_actor>((*device)->handle.device), state.options.request_limit, x, block)
    .then([&state, id, call, promise, number, block](gpu_sim::MemcpyResponse& y, byte_block& bytes) mutable {
            if (!state.call_ended(id, call))
              return;
            state.copies.copied(number, y.error().empty() ? std::move(block) : byte_block{});
            promise.deliver(std::move(y), std::move(bytes));
          },
          [&state, id, call, promise, number](const caf::error& problem) mutable {
            state.copies.copied(number, {});
            if (state.call_ended(id, call))
              promise.deliver(refusal<gpu_sim::MemcpyResponse>(no_answer(id, problem, state.options.request_limit)),
                              byte_block{});
          });
  return promise;
}

/// The course's form, with the bytes within the messages.
caf::result<gpu_sim::MemcpyResponse> copy_memory_within(coordinator_state& state, const gpu_sim::MemcpyRequest& x) {
  auto promise = state.self->make_response_promise<gpu_sim::MemcpyResponse>();
  auto bare = x;
  byte_block block;
  if (x.has_hosttodevice())
    block = take_bytes(bare);
  auto limit = 2 * state.options.request_limit; // the device's own comes first
  state.self->request(coordinator_actor{state.self}, limit, std::move(bare), std::move(block))
    .then([promise](gpu_sim::MemcpyResponse& y, const byte_block& bytes) mutable {
            if (y.has_devicetohost())
              y.mutable_devicetohost()->set_dstdata(bytes.data(), bytes.size());
            promise.deliver(std::move(y));
          },
          [promise](const caf::error& problem) mutable {
            promise.deliver(refusal<gpu_sim::MemcpyResponse>(problem));
          });
  return promise;
}

constexpr uint32_t ranks_max = 1u << 16; ///< A rank beyond is one too many in any communicator.

proto::CollectiveRequest general(const gpu_sim::AllReduceRingRequest& x) {
  proto::CollectiveRequest result;
  result.set_comm_id(x.commid());
  auto& what = *result.mutable_collective();
  what.set_kind(proto::ALL_REDUCE);
  what.set_algorithm("ring");
  what.set_datatype(x.datatype());
  what.set_op(x.op());
  what.set_count(x.count());
  auto by_rank = [](const google::protobuf::Map<uint32_t, gpu_sim::MemAddr>& from, auto& to) {
    for (auto& [rank, address] : from) {
      while (to.size() <= static_cast<int>(std::min(rank, ranks_max)))
        to.Add(0);
      to[static_cast<int>(std::min(rank, ranks_max))] = address.value();
    }
  };
  by_rank(x.memaddrs(), *result.mutable_inputs());
  by_rank(x.outputaddrs(), *result.mutable_outputs());
  return result;
}

/// Enqueues, and notes what the host could give back to a spare.
template <class Response>
caf::result<Response> collective(coordinator_state& state, const proto::CollectiveRequest& x) {
  auto entry = state.communicators.find(x.comm_id());
  if (entry == state.communicators.end())
    return refusal<Response>(state.communicator_of(x.comm_id()).error());
  auto promise = state.self->make_response_promise<Response>();
  auto noted = entry->second.policy == proto::REPLACE ? std::make_shared<proto::CollectiveRequest>(x) : nullptr;
  state.self->request(entry->second.handle, state.options.request_limit, x)
    .then([&state, noted, promise](const proto::CollectiveResponse& y) mutable {
            if (y.success() && noted)
              state.note_checkpoints(*noted, y.sequence());
            Response answer;
            answer.set_success(y.success());
            answer.set_error(y.error());
            answer.set_code(y.code());
            answer.set_sequence(y.sequence());
            promise.deliver(std::move(answer));
          },
          [&state, promise, id = x.comm_id()](const caf::error& problem) mutable {
            promise.deliver(refusal<Response>(
              no_answer(fmt::format("communicator {}", id), problem, state.options.request_limit, errc::unknown_communicator)));
          });
  return promise;
}

/// The general form, which passes through as it is where nothing is to be noted.
caf::result<proto::CollectiveResponse> general_collective(coordinator_state& state, proto::CollectiveRequest& x) {
  auto entry = state.communicators.find(x.comm_id());
  if (entry == state.communicators.end() || entry->second.policy == proto::REPLACE)
    return collective<proto::CollectiveResponse>(state, x);
  return state.self->delegate(entry->second.handle, std::move(x));
}

} // namespace

uint64_t coordinator_state::note_call(device_entry& device, std::function<void(const std::string&)> fail) {
  device.calls.emplace(++calls_, std::move(fail));
  return calls_;
}

bool coordinator_state::call_ended(uint64_t device, uint64_t call) {
  auto i = devices.find(device);
  return i != devices.end() && i->second.calls.erase(call) > 0;
}

caf::expected<communicator_actor> coordinator_state::communicator_of(uint64_t id) const {
  auto i = communicators.find(id);
  if (i != communicators.end())
    return i->second.handle;
  if (auto failed = failed_.find(id); failed != failed_.end())
    return make_error(errc::unknown_communicator, fmt::format("communicator {} has failed: {}", id, failed->second));
  return make_error(errc::unknown_communicator,
                    id != 0 && id <= communicator_ids_
                      ? fmt::format("communicator {} has been destroyed", id)
                      : fmt::format("there is no communicator {}: CommInit makes one and says its number", id));
}

caf::expected<coordinator_state::device_entry*> coordinator_state::device_of(uint64_t id) {
  auto i = devices.find(id);
  if (i != devices.end())
    return &i->second;
  auto gone = gone_.find(id);
  if (gone != gone_.end())
    return make_error(errc::unknown_device, fmt::format("device 0x{:x} has died: {}", id, gone->second));
  return make_error(errc::unknown_device, fmt::format("there is no device 0x{:x}; {} devices are here", id, devices.size()));
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
  state.options = std::move(options);
  state.start_ids_above(state.options.known);
  state.copies = host_copies{state.options.host_copies_bytes_max};
  self->set_down_handler([&state](const caf::down_msg& x) { state.on_down(x); });
  proto::Record record;
  record.mutable_coordinator_started()->set_pid(state.options.pid);
  state.journal(std::move(record));
  using namespace gpu_sim;
  return {
    [&state](const CommInitRequest& x) { return state.comm_init(x); },
    course_call<GetCommStatusResponse, GetCommStatusRequest>(state),
    course_call<GroupStartResponse, GroupStartRequest>(state),
    course_call<GroupEndResponse, GroupEndRequest>(state),
    [&state](const AllReduceRingRequest& x) { return collective<AllReduceRingResponse>(state, general(x)); },
    [&state](const MemcpyRequest& x) { return copy_memory_within(state, x); },
    [&state](const MemcpyRequest& x, const byte_block& block) { return copy_memory(state, x, block); },
    [&state](proto::CollectiveRequest& x) { return general_collective(state, x); },
    communicator_call<GetCommStatusResponse, proto::CommWaitRequest>(state),
    communicator_call<proto::CommAbortResponse, proto::CommAbortRequest>(state),
    communicator_call<proto::CommDestroyResponse, proto::CommDestroyRequest>(state),
    [&state](const proto::CommDeriveRequest& x) { return state.derive(x); },
    [&state](const proto::RankCall& x) -> caf::result<proto::RankCallResponse> {
      auto target = state.communicator_of(x.comm_id());
      if (!target)
        return refusal<proto::RankCallResponse>(target.error());
      return state.self->delegate(*target, x);
    },
    [&state](const proto::ClusterInfoRequest& x) { return state.wait_for_devices(x); },
    [&state](const proto::JournalFlushRequest& x) -> caf::result<proto::JournalFlushResponse> {
      if (!state.options.journal)
        return refusal<proto::JournalFlushResponse>("this cluster keeps no journal");
      return state.self->delegate(state.options.journal, x);
    },
    [&state](const proto::JournalTailRequest& x) -> caf::result<proto::JournalTailResponse> {
      if (!state.options.journal)
        return refusal<proto::JournalTailResponse>("this cluster keeps no journal");
      return state.self->delegate(state.options.journal, x);
    },
    device_call<GetDeviceMetadataResponse, GetDeviceMetadataRequest>(state),
    device_call<BeginSendResponse, BeginSendRequest>(state),
    [&state](const DeviceId& id, const BeginReceiveRequest& x) {
      state.will_change(id.value(), x.recvbuffaddr().value(), x.numbytes());
      return ask_device<BeginReceiveResponse>(state, id.value(), x, state.options.request_limit);
    },
    device_call<StreamSendResponse, DataChunk>(state),
    device_call<GetStreamStatusResponse, GetStreamStatusRequest>(state),
    [&state](const DeviceId& id, const proto::CopyRequest& x) {
      state.will_change(id.value(), x.destination().value(), x.bytes());
      return ask_device<proto::CopyResponse>(state, id.value(), x, state.options.request_limit);
    },
    [&state](const DeviceId& id, const proto::AllocateRequest& x) { return allocate(state, device_id{id.value()}, x); },
    [&state](const DeviceId& id, const proto::FreeRequest& x) { return free(state, device_id{id.value()}, x); },
    device_call<proto::StreamCreateResponse, proto::StreamCreateRequest>(state),
    [&state](const DeviceId& id, const proto::StreamSynchronizeRequest& x) {
      auto asked = x;
      if (asked.timeout_ns() == 0)
        asked.set_timeout_ns(static_cast<uint64_t>(state.options.request_limit.count()));
      auto limit = state.options.request_limit + request_limit(asked.timeout_ns()); // the stream's own text comes first
      return ask_device<proto::StreamSynchronizeResponse>(state, id.value(), asked, limit);
    },
    device_call<proto::EventRecordResponse, proto::EventRecordRequest>(state),
    device_call<proto::EventWaitResponse, proto::EventWaitRequest>(state),
    device_call<proto::FaultResponse, proto::FaultRequest>(state),
    [&state](const proto::NodeJoinRequest& x,
             const caf::strong_actor_ptr& node) -> caf::result<proto::NodeJoinResponse, caf::strong_actor_ptr> {
      auto promise = state.self->make_response_promise<proto::NodeJoinResponse, caf::strong_actor_ptr>();
      promise.deliver(state.node_joined(x, node), caf::actor_cast<caf::strong_actor_ptr>(state.options.journal));
      state.introduce_nodes(); // it knows its name by then
      return promise;
    },
    [&state](const proto::DeviceJoinRequest& x) {
      proto::DeviceJoinResponse answer;
      answer.set_device_id(state.give_device_id(x));
      return answer;
    },
    [&state](const proto::DeviceReady& x, const device_handle& handle) { state.device_ready(x, handle); },
    [&state](const proto::MemberLost& x) { state.member_lost(x); },
    [&state](const proto::SpareRequest& x) { return state.spare(x); },
    [&state](const proto::OutputsWritten& x) { state.outputs_written(x); },
    [&state](atom::expire, uint64_t waiter) { state.expire(waiter); },
  };
}

} // namespace ringmaster
