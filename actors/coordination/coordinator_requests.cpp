// Clients' calls that the COORDINATOR does not only pass on.
#include "actors/coordination/coordinator_requests.hpp"

#include "runtime/reduction/reduction.hpp"
#include "runtime/schedule/request_of.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace ringmaster {

caf::error no_answer(const std::string& who, const caf::error& problem, caf::timespan limit, errc gone) {
  if (problem == caf::sec::request_timeout)
    return make_error(errc::timed_out, fmt::format("{} did not answer within {:.1f} s", who,
                                                   std::chrono::duration<double>{limit}.count()));
  if (problem == caf::sec::request_receiver_down)
    return make_error(gone, who + " has ended");
  if (problem == errc::too_many) // it lives, and has refused the request
    return problem;
  return make_error(gone, fmt::format("{} did not answer: {}", who, render(problem)));
}

caf::result<proto::AllocateResponse> allocate(coordinator_state& state, device_id id, proto::AllocateRequest x) {
  auto client = x.outlives_client() ? caf::actor_addr{} : state.clients.calling_client();
  x.set_maker(state.access.caller().maker());
  x.set_owner(client ? caf::to_string(client) : std::string{});
  return ask_device<proto::AllocateResponse>(state, id, x, state.options.request_limit,
                                             [&state, id, client, bytes = x.bytes(), maker = x.maker()](const auto& y) {
                                               if (!y.error().empty())
                                                 return;
                                               const owned_range range{id, y.address().value()};
                                               state.access.allocated(range, bytes, maker);
                                               state.clients.own(client, range);
                                             });
}

caf::result<proto::FreeResponse> free(coordinator_state& state, device_id id, const proto::FreeRequest& x) {
  return ask_device<proto::FreeResponse>(state, id, x, state.options.request_limit,
                                         [&state,
                                          range = owned_range{id, x.address().value()}](const proto::FreeResponse& y) {
                                           if (!y.success())
                                             return;
                                           state.access.freed(range);
                                           state.clients.freed(range);
                                           state.recovery.freed(range);
                                         });
}

namespace {

/// Bytes within the message become bytes beside it.
byte_block take_bytes(gpu_sim::MemcpyRequest& x) {
  auto data = std::move(*x.mutable_hosttodevice()->mutable_hostsrcdata());
  x.mutable_hosttodevice()->clear_hostsrcdata();
  return byte_block::of(std::vector<char>(data.begin(), data.end()));
}

/// Notes a copy that is under way; returns its number, or 0.
uint64_t note_copy(coordinator_state& state, const known_device& device, const gpu_sim::MemcpyRequest& x,
                   uint64_t bytes) {
  auto to = x.hosttodevice().dstmemaddr().value();
  if (!x.has_hosttodevice() || !within(device.metadata, to, bytes))
    return 0;
  auto id = id_of(device.metadata);
  if (state.may_replace(id))
    return state.copies.copying(id, to, bytes);
  state.copies.will_change(id, to, bytes);
  return 0;
}

} // namespace

caf::result<gpu_sim::MemcpyResponse, byte_block> copy_memory(coordinator_state& state, gpu_sim::MemcpyRequest x,
                                                             byte_block block) {
  auto no = [](const caf::error& problem) { return refusal<gpu_sim::MemcpyResponse>(problem); };
  if (x.has_hosttodevice() && block.size() == 0)
    block = take_bytes(x);
  if (x.either_case() == gpu_sim::MemcpyRequest::EITHER_NOT_SET)
    return {no(invalid("Memcpy names neither hostToDevice nor deviceToHost")), byte_block{}};
  device_id id{x.has_hosttodevice() ? x.hosttodevice().dstdeviceid().value() : x.devicetohost().srcdeviceid().value()};
  auto device = state.devices.known(id);
  if (!device)
    return {no(device.error()), byte_block{}};
  auto promise = state.self->make_response_promise<gpu_sim::MemcpyResponse, byte_block>();
  auto number = note_copy(state, **device, x, block.size());
  ask_device_then<gpu_sim::MemcpyResponse, byte_block>(
    state, id, state.options.request_limit,
    [&state, promise, number, block](gpu_sim::MemcpyResponse& y, byte_block& bytes) mutable {
      state.copies.copied(number, y.error().empty() ? std::move(block) : byte_block{});
      promise.deliver(std::move(y), std::move(bytes));
    },
    [&state, promise, number, no](const caf::error& problem) mutable {
      state.copies.copied(number, {});
      promise.deliver(no(problem), byte_block{});
    },
    x, block);
  return promise;
}

caf::result<gpu_sim::MemcpyResponse> copy_memory_within(coordinator_state& state, const gpu_sim::MemcpyRequest& x) {
  auto promise = state.self->make_response_promise<gpu_sim::MemcpyResponse>();
  auto bare = x;
  byte_block block;
  if (x.has_hosttodevice())
    block = take_bytes(bare);
  auto limit = 2 * state.options.request_limit; // the device's own comes first
  state.self->request(coordinator_actor{state.self}, limit, std::move(bare), std::move(block))
    .then(
      [promise](gpu_sim::MemcpyResponse& y, const byte_block& bytes) mutable {
        if (y.has_devicetohost())
          y.mutable_devicetohost()->set_dstdata(bytes.data(), bytes.size());
        promise.deliver(std::move(y));
      },
      refuse_by(promise));
  return promise;
}

proto::CollectiveRequest general(const gpu_sim::AllReduceRingRequest& x) {
  constexpr uint32_t ranks_max = 1u << 16; // a rank beyond is one too many in any communicator
  proto::CollectiveRequest result;
  result.set_comm_id(x.commid());
  if (x.caller() != 0) {
    result.mutable_call()->set_caller(x.caller());
    result.mutable_call()->set_number(x.callnumber());
  }
  auto& what = *result.mutable_collective();
  const auto& which = course_algorithm();
  what.set_kind(which.kind);
  what.set_algorithm(std::string{which.name});
  what.set_datatype(x.datatype());
  what.set_op(x.op());
  what.set_count(x.count());
  auto by_rank = [ranks_max](const google::protobuf::Map<uint32_t, gpu_sim::MemAddr>& from, auto& to) {
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

namespace {

/// Whether the host's copies of its inputs are to be noted.
bool is_noted(const coordinator_state& state, communicator_id id) {
  auto known = state.communicators.find(id);
  return known != nullptr && known->policy == proto::REPLACE;
}

/// Records which inputs of an operation the host could give to a spare.
void note_checkpoints(coordinator_state& state, const proto::CollectiveRequest& x, sequence_number sequence) {
  auto& what = x.collective();
  auto world = request_of(what, static_cast<uint32_t>(std::max(x.inputs_size(), x.outputs_size())), 0);
  for (uint32_t rank = 0; rank < world.world_size; ++rank) {
    auto given = static_cast<int>(rank) < x.inputs_size() ? x.inputs(static_cast<int>(rank)) : 0;
    auto bytes = input_count(what.kind(), world, rank) * size_of(what.datatype());
    if (given == 0 || bytes == 0)
      continue;
    auto address = given;
    if (x.outputs().empty())
      address += in_place(what.kind(), world, rank).input * size_of(what.datatype());
    for (auto& [id, device] : state.devices.devices()) {
      if (!within(device.metadata, address, 1) || !state.copies.find(id, address, bytes))
        continue;
      proto::Record record;
      auto& checkpoint = *record.mutable_input_checkpoint();
      checkpoint.set_comm_id(x.comm_id());
      checkpoint.set_sequence(sequence.value);
      checkpoint.set_device_id(id.value);
      checkpoint.set_address(address);
      checkpoint.set_bytes(bytes);
      state.journal(std::move(record));
    }
  }
}

void note(coordinator_state& state, const proto::CollectiveRequest& x, const proto::CollectiveResponse& y) {
  if (y.success())
    note_checkpoints(state, x, sequence_number{y.sequence()});
}

/// Hands calls on to their communicator. `look` sees the answer first where something is to be noted.
template <class Response, class Request, class Look>
caf::result<Response> hand_on(coordinator_state& state, communicator_id id, Request& x, Look look) {
  state.mailboxes.close(id);
  if (auto target = state.communicator_of(id); target && !is_noted(state, id))
    return state.self->delegate(*target, std::move(x)); // the shortest way
  return ask_communicator<Response>(state, id, x, state.options.request_limit,
                                    [x, look](const Response& y) { look(x, y); });
}

} // namespace

caf::result<proto::CollectiveResponse> collective(coordinator_state& state, proto::CollectiveRequest& x) {
  return hand_on<proto::CollectiveResponse>(state, communicator_id{x.comm_id()}, x,
                                            [&state](auto& call, auto& answer) { note(state, call, answer); });
}

caf::result<proto::CollectiveResponses> collectives(coordinator_state& state, proto::CollectiveRequests& x) {
  if (x.calls().empty())
    return refusal<proto::CollectiveResponses>(errc::invalid_argument, "CollectiveRequests has no call");
  constexpr int calls_max = 1024; // each takes its time, and others wait meanwhile
  if (x.calls_size() > calls_max)
    return refusal<proto::CollectiveResponses>(
      errc::too_many,
      fmt::format("CollectiveRequests has {} calls, and may have {}: send several", x.calls_size(), calls_max));
  auto of_first = [id = x.calls(0).comm_id()](auto& call) { return call.comm_id() == id; };
  if (auto other = std::ranges::find_if_not(x.calls(), of_first); other != x.calls().end())
    return refusal<proto::CollectiveResponses>(
      errc::invalid_argument, fmt::format("CollectiveRequests has calls of communicators {} and {}, where all must be "
                                          "of one",
                                          x.calls(0).comm_id(), other->comm_id()));
  return hand_on<proto::CollectiveResponses>(state, communicator_id{x.calls(0).comm_id()}, x,
                                             [&state](auto& request, auto& response) {
                                               for (int i = 0; i < response.answers_size(); ++i)
                                                 note(state, request.calls(i), response.answers(i));
                                             });
}

caf::result<gpu_sim::AllReduceRingResponse> all_reduce_ring(coordinator_state& state,
                                                            const gpu_sim::AllReduceRingRequest& x) {
  auto promise = state.self->make_response_promise<gpu_sim::AllReduceRingResponse>();
  state.mailboxes.close(communicator_id{x.commid()});
  auto request = general(x);
  bool noted = is_noted(state, communicator_id{x.commid()});
  ask_communicator_then<proto::CollectiveResponse>(
    state, communicator_id{x.commid()}, request, state.options.request_limit,
    [&state, promise, noted, request](const proto::CollectiveResponse& y) mutable {
      if (noted)
        note(state, request, y);
      auto answer = verdict<gpu_sim::AllReduceRingResponse>(error_in(y));
      answer.set_sequence(y.sequence());
      promise.deliver(std::move(answer));
    },
    refuse_by(promise));
  return promise;
}

caf::result<proto::RankCallResponse> rank_call(coordinator_state& state, proto::RankCall& x) {
  auto target = state.communicator_of(communicator_id{x.comm_id()});
  if (!target)
    return refusal<proto::RankCallResponse>(target.error());
  return state.self->delegate(*target,
                              std::move(x)); // it has limits of its own, and answers the rank itself, also when it dies
}

} // namespace ringmaster
