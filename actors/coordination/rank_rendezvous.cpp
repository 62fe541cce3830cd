#include "actors/coordination/rank_rendezvous.hpp"

#include "actors/calls/answers.hpp"
#include "actors/calls/request_limit.hpp"
#include "actors/coordination/communicator_creation.hpp"
#include "actors/coordination/coordinator_requests.hpp"
#include "runtime/coordination/join_checks.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

namespace ringmaster {

namespace {

constexpr caf::timespan missing_logged_after = std::chrono::seconds{5};

} // namespace

caf::result<proto::RendezvousResponse> rank_rendezvous::rendezvous(const proto::RendezvousRequest& x) {
  if (auto problem = check_job(fmt::format("rank {}", x.rank()), x.job(), coordinator_.options.job))
    return refusal<proto::RendezvousResponse>(problem);
  auto self = coordinator_.self;
  auto promise = self->make_response_promise<proto::RendezvousResponse>();
  if (auto problem = coordinator_.check_waiting()) {
    promise.deliver(refusal<proto::RendezvousResponse>(problem));
    return promise;
  }
  if (const auto formed = desk_.formed_with(x))
    if (const auto* known = coordinator_.communicators.find(*formed)) { // it is sent again after a restart
      promise.deliver(response_of(made_before(known->stored), {}));
      return promise;
    }
  auto number = coordinator_.next_number();
  auto all = desk_.arrived(x, number, self->clock().now());
  if (!all) {
    promise.deliver(refusal<proto::RendezvousResponse>(all.error()));
    return promise;
  }
  auto limit = request_limit(x.timeout_ns());
  waiters_[number] = {coordinator_.calling_peer, limit, promise};
  if (*all) {
    form(**all);
  } else {
    self->delayed_send(self, limit, atom::expire_v, number);
    self->delayed_send(self, missing_logged_after, atom::tick_v, number);
  }
  return promise;
}

void rank_rendezvous::form(const rendezvous_desk::complete_group& group) {
  gpu_sim::CommInitRequest request;
  for (auto device : group.devices)
    request.add_deviceids(device.value);
  request.set_defaultpolicy(true);
  request.set_outlivesclient(true);           // the death of one rank's process must not destroy it
  request.set_name(as_comm_name(group.name)); // launchers have jobs of any name
  auto made = coordinator_.inits.init_at_once(request);
  auto problem = error_in(made);
  const auto waiters = desk_.formed(group.name, problem ? caf::expected<communicator_id>{problem} : id_of(made));
  if (!problem)
    coordinator_.store_communicator(id_of(made), [&](auto& stored) { stored.set_group(group.name); });
  coordinator_.metadata.when_stored([this, waiters, made, problem] { answer(waiters, made, problem); });
}

void rank_rendezvous::restore(const proto::StoredCommunicator& stored, const std::vector<device_id>& lost) {
  std::vector<device_id> ranks;
  for (auto& x : stored.devices())
    ranks.push_back(id_of(x));
  desk_.restore(stored.group(), ranks, communicator_id{stored.comm_id()});
  for (auto device : lost)
    desk_.lost(device, "it was lost while the coordinator was away");
}

caf::result<proto::FinalizeResponse> rank_rendezvous::finalize(const proto::FinalizeRequest& x) {
  auto self = coordinator_.self;
  auto promise = self->make_response_promise<proto::FinalizeResponse>();
  if (auto problem = coordinator_.check_waiting()) {
    promise.deliver(refusal<proto::FinalizeResponse>(problem));
    return promise;
  }
  auto number = coordinator_.next_number();
  auto limit = request_limit(x.timeout_ns());
  waiters_[number] = {coordinator_.calling_peer, limit, promise};
  auto all = desk_.leaves(x, number);
  report_departures();
  if (all)
    end_group(*all);
  else
    self->delayed_send(self, limit, atom::expire_v, number);
  return promise;
}

void rank_rendezvous::report_departures() {
  for (auto& each : desk_.take_departures())
    if (coordinator_.options.on_departure)
      coordinator_.options.on_departure(each);
}

void rank_rendezvous::log_missing_ranks(uint64_t number) const {
  if (const auto missing = desk_.awaited_by(number))
    spdlog::warn("{} {} not come within {} of the first: the others wait", missing->text,
                 missing->count == 1 ? "has" : "have", duration_text(missing_logged_after));
}

proto::RankAbsentResponse rank_rendezvous::rank_absent(const proto::RankAbsentRequest& x) {
  for (auto& each : desk_.absent(x, coordinator_.self->clock().now()))
    answer(each.to, {}, each.problem);
  return verdict<proto::RankAbsentResponse>(caf::none);
}

proto::RendezvousResponse rank_rendezvous::response_of(const gpu_sim::CommInitResponse& made,
                                                       const caf::error& problem) const {
  auto response = refusal<proto::RendezvousResponse>(problem);
  response.set_comm_id(made.commid());
  *response.mutable_devices() = made.devices();
  for (auto& each : made.devices()) {
    const auto* device = coordinator_.devices.find(id_of(each));
    response.add_node_ids(device == nullptr ? 0 : device->node.value);
  }
  return response;
}

void rank_rendezvous::answer(const std::vector<uint64_t>& waiters, const gpu_sim::CommInitResponse& made,
                             const caf::error& problem) {
  for (auto number : waiters) {
    auto found = waiters_.extract(number);
    if (!found)
      continue;
    if (auto start = std::get_if<0>(&found.mapped().promise)) {
      ensure(problem || made.success(), "ranks that have come get their communicator or an error");
      start->deliver(response_of(made, problem));
    } else {
      std::get<1>(found.mapped().promise).deliver(verdict<proto::FinalizeResponse>(problem));
    }
  }
}

void rank_rendezvous::end_group(const rendezvous_desk::left_group& x) {
  auto id = x.communicator;
  if (coordinator_.communicators.find(id) == nullptr)
    return answer(x.to, {}, {});
  proto::CommDestroyRequest request;
  request.set_comm_id(id.value);
  request.set_reason("all of its ranks have left");
  auto& options = coordinator_.options;
  auto limit = options.request_limit + options.communicators.operation_limit; // for streams that are given up
  ask_communicator_then<proto::CommDestroyResponse>(
    coordinator_, id, request, limit,
    [this, x](const proto::CommDestroyResponse&) {
      coordinator_.communicator_ended(x.communicator, {});
      answer(x.to, {}, {});
    },
    [this, x](const caf::error& problem) { answer(x.to, {}, problem); });
}

void rank_rendezvous::device_lost(device_id device, const std::string& cause) {
  for (auto& x : desk_.lost(device, cause))
    answer(x.to, {}, x.problem);
  report_departures();
  while (auto left = desk_.next_left())
    end_group(*left);
}

bool rank_rendezvous::expire(uint64_t number) {
  auto found = waiters_.find(number);
  if (found == waiters_.end())
    return false;
  if (auto late = desk_.expired(number, duration_text(found->second.limit)))
    answer(late->to, {}, late->problem);
  return true;
}

size_t rank_rendezvous::waiting_of(const request_peer& peer) const {
  return static_cast<size_t>(std::ranges::count_if(waiters_, [&](auto& x) { return x.second.peer == peer; }));
}

proto::MeetingResponse rank_mailboxes::open(const proto::MeetingRequest& x) {
  communicator_id id{x.comm_id()};
  auto known = coordinator_.communicators.known(id);
  if (!known)
    return refusal<proto::MeetingResponse>(known.error());
  auto no = [&](std::string_view why) {
    return refusal<proto::MeetingResponse>(make_error(
      errc::unreachable, fmt::format("the ranks of communicator {} have no shared-memory mailbox: {}", id, why)));
  };
  if ((*known)->policy == proto::REPLACE)
    return no("its policy is \"replace\", and the coordinator must know what a spare is to get");
  auto members = coordinator_.devices.members_of(id);
  if (members.size() != x.world_size())
    return no("ranks are lost");
  // On different hosts, calls that are not made in the mailbox may take an algorithm that adds in another order.
  if (coordinator_.options.meet_bytes != 0 && coordinator_.options.communicators.neighbours)
    if (auto problem = check_memory_reach(coordinator_, members))
      return no(render(problem));
  auto page = mailboxes_.page_of(id, epoch_number{x.epoch()}, x.world_size());
  return page ? std::move(*page) : refusal<proto::MeetingResponse>(page.error());
}

void rank_mailboxes::report(const proto::MetReport& x) {
  coordinator_.communicators.met(communicator_id{x.comm_id()}, x.operations(), x.ended_ns());
  proto::Record record;
  auto& what = *record.mutable_operations_met();
  what.set_comm_id(x.comm_id());
  what.set_epoch(x.epoch());
  what.set_operations(x.operations());
  what.set_bytes(x.bytes());
  what.set_started_ns(x.started_ns());
  what.set_ended_ns(x.ended_ns());
  what.set_world_size(x.world_size());
  coordinator_.journal(std::move(record));
}

void rank_mailboxes::close(communicator_id id) {
  if (mailboxes_.empty())
    return;
  mailboxes_.close(id);
  for (auto device : coordinator_.devices.members_of(id))
    close(device);
}

void rank_mailboxes::close(device_id id) {
  if (mailboxes_.empty())
    return;
  if (auto device = coordinator_.devices.find(id))
    for (auto communicator : device->communicators)
      mailboxes_.close(communicator);
}

} // namespace ringmaster
