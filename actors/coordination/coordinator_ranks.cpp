// The COORDINATOR's groups of ranks that processes of their own play: how they come together, and how they leave.
#include "actors/calls/request_limit.hpp"
#include "actors/coordination/coordinator_requests.hpp"
#include "runtime/coordination/comm_name.hpp"
#include "runtime/coordination/job_check.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace ringmaster {

namespace {

constexpr caf::timespan missing_told_after = std::chrono::seconds{5};

} // namespace

caf::result<proto::RendezvousResponse> coordinator_state::rendezvous(const proto::RendezvousRequest& x) {
  if (auto problem = check_job(fmt::format("rank {}", x.rank()), x.job(), options.job))
    return refusal<proto::RendezvousResponse>(problem);
  auto promise = self->make_response_promise<proto::RendezvousResponse>();
  if (auto problem = check_waiting()) {
    promise.deliver(refusal<proto::RendezvousResponse>(problem));
    return promise;
  }
  auto number = ++waits_;
  auto all = ranks_.arrived(x, number, self->clock().now());
  if (!all) {
    promise.deliver(refusal<proto::RendezvousResponse>(all.error()));
    return promise;
  }
  auto limit = request_limit(x.timeout_ns());
  waiting_ranks_[number] = {calling_peer, limit, promise};
  if (!*all) {
    self->delayed_send(self, limit, atom::expire_v, number);
    self->delayed_send(self, missing_told_after, atom::tick_v, number);
    return promise;
  }
  gpu_sim::CommInitRequest request;
  for (auto device : (*all)->devices)
    request.add_deviceids(device.value);
  request.set_defaultpolicy(true);
  request.set_outlivesclient(true);             // the death of one rank's process must not take it
  request.set_name(as_comm_name((*all)->name)); // launchers have jobs of any name
  auto made = init_at_once(request);
  auto problem = error_in(made);
  auto waiters = ranks_.formed((*all)->name, problem ? caf::expected<communicator_id>{problem} : id_of(made));
  answer_ranks(waiters, made, problem);
  return promise;
}

caf::result<proto::FinalizeResponse> coordinator_state::finalize(const proto::FinalizeRequest& x) {
  auto promise = self->make_response_promise<proto::FinalizeResponse>();
  if (auto problem = check_waiting()) {
    promise.deliver(refusal<proto::FinalizeResponse>(problem));
    return promise;
  }
  auto number = ++waits_;
  auto limit = request_limit(x.timeout_ns());
  waiting_ranks_[number] = {calling_peer, limit, promise};
  auto all = ranks_.leaves(x, number);
  tell_departures();
  if (all)
    end_group(*all);
  else
    self->delayed_send(self, limit, atom::expire_v, number);
  return promise;
}

void coordinator_state::tell_departures() {
  for (auto& each : ranks_.take_departures())
    if (options.on_departure)
      options.on_departure(each);
}

void coordinator_state::tell_missing_ranks(uint64_t number) const {
  if (const auto missing = ranks_.awaited_by(number))
    spdlog::warn("{} {} not come, {} after the first: the others wait", missing->text,
                 missing->count == 1 ? "has" : "have", duration_text(missing_told_after));
}

proto::RankAbsentResponse coordinator_state::rank_absent(const proto::RankAbsentRequest& x) {
  for (auto& told : ranks_.absent(x, self->clock().now()))
    answer_ranks(told.to, {}, told.problem);
  return verdict<proto::RankAbsentResponse>(caf::none);
}

void coordinator_state::answer_ranks(const std::vector<uint64_t>& waiters, const gpu_sim::CommInitResponse& made,
                                     const caf::error& problem) {
  for (auto number : waiters) {
    auto waiter = waiting_ranks_.extract(number);
    if (!waiter)
      continue;
    if (auto begin = std::get_if<0>(&waiter.mapped().promise)) {
      auto answer = refusal<proto::RendezvousResponse>(problem);
      answer.set_comm_id(made.commid());
      *answer.mutable_devices() = made.devices();
      for (auto& each : made.devices())
        answer.add_node_ids(devices.devices().at(id_of(each)).node.value);
      begin->deliver(std::move(answer));
    } else {
      std::get<1>(waiter.mapped().promise).deliver(verdict<proto::FinalizeResponse>(problem));
    }
  }
}

void coordinator_state::end_group(const rendezvous_desk::left_group& x) {
  auto id = x.communicator;
  if (communicators.find(id) == nullptr)
    return answer_ranks(x.to, {}, {});
  proto::CommDestroyRequest request;
  request.set_comm_id(id.value);
  request.set_reason("all of its ranks have left");
  auto limit = options.request_limit + options.communicators.operation_limit; // streams may be given up
  ask_communicator_then<proto::CommDestroyResponse>(
    *this, id, request, limit,
    [this, x](const proto::CommDestroyResponse&) {
      communicator_ended(x.communicator, {});
      answer_ranks(x.to, {}, {});
    },
    [this, x](const caf::error& problem) { answer_ranks(x.to, {}, problem); });
}

proto::MeetingResponse coordinator_state::meeting(const proto::MeetingRequest& x) {
  communicator_id id{x.comm_id()};
  auto known = communicators.known(id);
  if (!known)
    return refusal<proto::MeetingResponse>(known.error());
  auto no = [&](std::string_view why) {
    return refusal<proto::MeetingResponse>(
      make_error(errc::unreachable, fmt::format("the ranks of communicator {} do not meet in memory: {}", id, why)));
  };
  if ((*known)->policy == proto::REPLACE)
    return no("its policy is \"replace\", and what a spare is given must be known here");
  auto members = devices.members_of(id);
  if (members.size() != x.world_size())
    return no("ranks are lost");
  // Elsewhere calls that do not meet may take an algorithm that adds in another order.
  if (options.meet_bytes != 0 && options.communicators.neighbours)
    if (auto problem = first_out_of_reach(members))
      return no(render(problem));
  auto page = meetings_.page_of(id, epoch_number{x.epoch()}, x.world_size());
  return page ? std::move(*page) : refusal<proto::MeetingResponse>(page.error());
}

void coordinator_state::met(const proto::MetReport& x) {
  communicators.met(communicator_id{x.comm_id()}, x.operations(), x.ended_ns());
  proto::Record record;
  auto& what = *record.mutable_operations_met();
  what.set_comm_id(x.comm_id());
  what.set_epoch(x.epoch());
  what.set_operations(x.operations());
  what.set_bytes(x.bytes());
  what.set_started_ns(x.started_ns());
  what.set_ended_ns(x.ended_ns());
  what.set_world_size(x.world_size());
  journal(std::move(record));
}

void coordinator_state::drop_rank_calls(communicator_id id) {
  if (meetings_.empty())
    return;
  meetings_.close(id);
  for (auto device : devices.members_of(id))
    drop_rank_calls(device);
}

void coordinator_state::drop_rank_calls(device_id id) {
  if (meetings_.empty())
    return;
  if (auto device = devices.find(id))
    for (auto communicator : device->communicators)
      meetings_.close(communicator);
}

void coordinator_state::rank_lost(device_id device, const std::string& cause) {
  for (auto& x : ranks_.lost(device, cause))
    answer_ranks(x.to, {}, x.problem);
  tell_departures();
  while (auto left = ranks_.next_left())
    end_group(*left);
}

} // namespace ringmaster
