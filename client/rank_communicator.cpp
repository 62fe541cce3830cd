#include "client/rank_communicator.hpp"

#include "actors/calls/request_limit.hpp"
#include "client/client.hpp"
#include "client/rank_caller.hpp"
#include "client/rank_mailbox.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/operations/rank_calls.hpp"

#include <caf/send.hpp>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace ringmaster {

namespace {

/// Passes a call to the actor that makes it.
void post(rank_outbox& box, const caf::actor& caller, proto::RankCall call, std::shared_ptr<work::state> calls) {
  ensure(static_cast<bool>(caller), "a handle that makes calls has the actor for them");
  auto& clock = caf::actor_cast<caf::abstract_actor*>(caller)->home_system().clock();
  box.put(std::move(call), std::move(calls), clock.now());
  caf::anon_send(caller, atom::flush_v);
}

} // namespace

caf::expected<rank_communicator> rank_communicator::attach(caf::actor_system& system,
                                                           const coordinator_actor& coordinator,
                                                           communicator_id communicator, uint32_t rank,
                                                           caf::timespan limit) {
  client host{system, coordinator, limit};
  TRY(members, host.members(communicator));
  if (rank >= static_cast<uint32_t>(members->devices_size()))
    return make_error(errc::invalid_argument, fmt::format("communicator {} has no rank {}: it has {} ranks",
                                                          communicator, rank, members->devices_size()));
  return rank_communicator{system, coordinator, communicator, *members, rank};
}

rank_communicator::rank_communicator(caf::actor_system& system, coordinator_actor coordinator,
                                     communicator_id communicator, const gpu_sim::GetCommStatusResponse& members,
                                     uint32_t rank)
  : system_{&system}, coordinator_{std::move(coordinator)}, id_{communicator}, outbox_{
                                                                                 std::make_shared<rank_outbox>()} {
  take_members(members, rank);
  caller_ = system.spawn<caf::hidden>(rank_caller, coordinator_, outbox_);
}

rank_communicator& rank_communicator::operator=(rank_communicator&& other) noexcept {
  if (this == &other)
    return *this;
  close();
  system_ = other.system_;
  coordinator_ = std::move(other.coordinator_);
  id_ = other.id_;
  rank_ = other.rank_;
  size_ = other.size_;
  epoch_ = other.epoch_;
  device_ = std::move(other.device_);
  outbox_ = std::move(other.outbox_);
  caller_ = std::exchange(other.caller_, nullptr);
  own_ = std::move(other.own_);
  meeting_ = std::move(other.meeting_);
  group_ = std::move(other.group_);
  return *this;
}

rank_communicator::~rank_communicator() {
  close();
}

void rank_communicator::close() {
  if (group_)
    finish(*group_->calls, {}, make_error(errc::aborted, "the rank's handle was destroyed before its group ended"));
  group_.reset();
  leave_meeting();
  if (caller_)
    caf::anon_send_exit(caller_, caf::exit_reason::user_shutdown);
  caller_ = nullptr;
  ensure(!meeting_ && !group_, "a closed handle has no mailbox and no group");
}

void rank_communicator::meet_by(std::shared_ptr<own_device> device, caf::timespan limit) {
  leave_meeting();
  ensure(meeting_ == nullptr, "a handle joins one mailbox at a time");
  own_ = std::move(device);
  if (!own_ || size_ < 2)
    return;
  client host{*system_, coordinator_, limit};
  proto::MeetingRequest request;
  request.set_comm_id(id_.value);
  request.set_epoch(epoch_.value);
  request.set_world_size(size_);
  auto page = host.ask_within<proto::MeetingResponse>(limit, std::move(request));
  caf::error problem;
  if (!page)
    problem = std::move(page.error());
  else {
    auto send = [box = outbox_, to = caller_](proto::RankCall call, std::shared_ptr<work::state> calls) {
      post(*box, to, std::move(call), std::move(calls));
    };
    auto abort = [to = coordinator_, id = id_](std::string reason) {
      proto::CommAbortRequest ending;
      ending.set_comm_id(id.value);
      ending.set_reason(std::move(reason));
      caf::anon_send(to, std::move(ending));
    };
    auto joined = rank_mailbox::join(*page, {id_, epoch_, rank_, size_}, own_, std::move(send), std::move(abort));
    if (joined)
      meeting_ = std::move(*joined);
    else
      problem = std::move(joined.error());
  }
  if (problem)
    spdlog::debug("rank {} of communicator {} makes its calls by messages: {}", rank_, id_, render(problem));
  std::scoped_lock lock{outbox_->guard};
  outbox_->meeting = meeting_;
}

uint64_t rank_communicator::calls_met() const {
  return meeting_ ? meeting_->calls_met() : 0;
}

void rank_communicator::leave_meeting() {
  if (!meeting_)
    return;
  meeting_->leave();
  if (auto done = meeting_->report(true))
    caf::anon_send(coordinator_, std::move(*done));
  meeting_.reset();
}

void rank_communicator::take_members(const gpu_sim::GetCommStatusResponse& members, uint32_t rank) {
  ensure(rank < static_cast<uint32_t>(members.devices_size()), "a rank's handle is of a member");
  ensure(members.epoch() >= epoch_.value, "a communicator's epoch never decreases");
  rank_ = rank;
  size_ = static_cast<uint32_t>(members.devices_size());
  epoch_ = epoch_number{members.epoch()};
  device_ = members.devices(static_cast<int>(rank));
}

caf::error rank_communicator::update(caf::timespan limit) {
  client host{*system_, coordinator_, limit};
  TRY(members, host.members(id_));
  for (int rank = 0; rank < members->devices_size(); ++rank)
    if (id_of(members->devices(rank)) == id_of(device_)) {
      bool changes = members->epoch() != epoch_.value;
      take_members(*members, static_cast<uint32_t>(rank));
      if (changes)
        meet_by(own_, limit);
      return caf::none;
    }
  return make_error(errc::device_lost, fmt::format("device 0x{:x} is no longer a member of communicator {}: {}",
                                                   id_of(device_), id_, members->asyncerror()));
}

proto::RankCall rank_communicator::new_call() const {
  proto::RankCall result;
  result.set_comm_id(id_.value);
  result.set_device_id(id_of(device_).value);
  result.set_epoch(epoch_.value);
  return result;
}

void rank_communicator::hand_over(proto::RankCall call, std::shared_ptr<work::state> calls) {
  ensure(calls != nullptr && call.comm_id() == id_.value, "a call has a result and is of the handle's communicator");
  if (meeting_) {
    meeting_->call(std::move(call), std::move(calls));
    if (meeting_->wants_ticks())
      caf::anon_send(caller_, atom::tick_v);
    return;
  }
  if (own_)
    rank_mailbox::make_way(own_, *calls);
  post(*outbox_, caller_, std::move(call), std::move(calls));
}

work rank_communicator::call(proto::RankCall::Part part, const call_options& opts) {
  part.mutable_collective()->set_algorithm(opts.algorithm);
  part.mutable_collective()->set_chunk_count(opts.chunk_count);
  auto limit = static_cast<uint64_t>(std::max<int64_t>(opts.timeout.count(), 0));
  if (group_) {
    auto& all = group_->call;
    if (limit != 0 && (all.timeout_ns() == 0 || limit < all.timeout_ns()))
      all.set_timeout_ns(limit);
    *all.add_parts() = std::move(part);
    return work{group_->calls};
  }
  auto calls = begin_work([rank = rank_, id = id_, name = name_of(part)] {
    return fmt::format("rank {} of communicator {}: {}", rank, id, name);
  });
  auto one = new_call();
  one.set_timeout_ns(limit);
  *one.add_parts() = std::move(part);
  hand_over(std::move(one), calls);
  return work{calls};
}

void rank_communicator::group_start() {
  if (!group_)
    group_ = {new_call(), begin_work([rank = rank_, id = id_] {
                return fmt::format("rank {} of communicator {}: a group of calls", rank, id);
              })};
}

work rank_communicator::group_end() {
  if (!group_)
    return {};
  auto ended = std::exchange(group_, std::nullopt);
  hand_over(std::move(ended->call), ended->calls);
  return work{ended->calls};
}

caf::expected<std::optional<rank_communicator>> rank_communicator::split(int32_t color, int64_t key,
                                                                         caf::timespan limit) {
  if (group_)
    return make_error(errc::invalid_argument,
                      "split waits for its result, which a group has only at its end: call it outside of the group");
  limit = request_limit(limit);
  proto::RankCall::Part part;
  part.set_split(true);
  part.set_color(color);
  part.set_key(key);
  auto made = call(std::move(part), {.timeout = limit});
  if (auto problem = made.wait(
        limit + std::chrono::seconds{5})) // the communicator's own error, with more detail, arrives first
    return problem;
  auto answer = made.answer();
  if (answer.split_comm_id() == 0)
    return std::optional<rank_communicator>{};
  TRY(part_of, attach(*system_, coordinator_, communicator_id{answer.split_comm_id()}, answer.split_rank(), limit));
  if (own_)
    part_of->meet_by(own_, limit);
  return std::optional<rank_communicator>{std::move(*part_of)};
}

call_group::call_group(std::vector<rank_communicator*> members) : members_{std::move(members)} {
  for (auto x : members_) {
    ensure(x != nullptr, "a group of calls is over handles that exist");
    x->group_start();
  }
}

call_group::~call_group() {
  end();
}

work call_group::end() {
  std::vector<work> all;
  for (auto x : std::exchange(members_, {}))
    all.push_back(x->group_end());
  return work{all};
}

} // namespace ringmaster
