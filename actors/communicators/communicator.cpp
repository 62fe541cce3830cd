#include "actors/communicators/communicator.hpp"

#include "actors/calls/answers.hpp"

#include "actors/calls/request_limit.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace ringmaster {

void communicator_state::start(const std::vector<gpu_sim::DeviceMetadata>& devices,
                               const device_handles& handles) {
  // In a large group an answer waits for its turn among all the others: that is no sign of a hang.
  constexpr size_t large = 32;
  constexpr auto turn = std::chrono::milliseconds{2};
  if (devices.size() > large)
    options.suspect.late_after += static_cast<int64_t>(devices.size()) * turn;
  proto::Record record;
  auto& created = *record.mutable_communicator_created();
  created.set_comm_id(options.id.value);
  created.set_policy(options.policy);
  created.set_deterministic(options.deterministic);
  for (size_t rank = 0; rank < devices.size(); ++rank) {
    members.push_back({devices[rank], handles[rank], suspicion{options.suspect}, {}});
    self->monitor(caf::actor_cast<caf::actor>(handles[rank].device));
    created.add_device_ids(members.back().id());
  }
  journal(std::move(record));
  if (options.coordinator)
    self->monitor(options.coordinator);
  announce_members();
  note_ranks();
}

gpu_sim::GetCommStatusResponse communicator_state::status() const {
  gpu_sim::GetCommStatusResponse result;
  bool in_flight = !operations_.empty() || !group_.empty() || changing();
  auto& error = error_.empty() && state == phase::aborted ? async_error_ : error_;
  result.set_status(in_flight       ? gpu_sim::IN_PROGRESS
                    : error.empty() ? gpu_sim::SUCCESS
                                    : gpu_sim::FAILED);
  if (!in_flight)
    result.set_error(error);
  result.set_asyncerror(async_error_);
  result.set_operationsinflight(static_cast<uint32_t>(operations_.size() + group_.size()));
  auto& [opened, devices] = *history_.rbegin(); // while members change, calls are for the epoch that was open last
  result.set_epoch(opened);
  for (auto& x : devices)
    *result.add_devices() = x;
  return result;
}

std::string communicator_state::group_start() {
  if (state == phase::aborted || state == phase::ending)
    return async_error_;
  if (group_open_)
    return fmt::format("GroupStart on communicator {} within a group: groups do not nest, call GroupEnd first",
                       options.id.value);
  group_open_ = true;
  return {};
}

std::string communicator_state::group_end() {
  if (state == phase::aborted || state == phase::ending)
    return async_error_;
  if (!group_open_)
    return fmt::format("GroupEnd on communicator {} without GroupStart", options.id.value);
  group_open_ = false;
  auto calls = std::move(group_);
  group_.clear();
  if (calls.empty()) {
    if (operations_.empty() && state == phase::active)
      error_.clear(); // an empty group succeeds
    settle();
    return {};
  }
  if (operations_.empty()) {
    error_.clear();
    last_progress_ = self->clock().now();
  }
  ++groups_;
  for (auto& op : calls) {
    op.group = groups_;
    operations_.push_back(std::move(op));
    limit_operation(operations_.back());
  }
  if (state == phase::active) {
    end_cancelled();
    for (auto& op : operations_)
      if (op.attempts == 0)
        run(op);
    flush_plans();
  }
  keep_ticking();
  return {};
}

caf::error communicator_state::group_problem(const std::string& text) const {
  if (text.empty())
    return caf::none;
  return make_error(state == phase::aborted || state == phase::ending ? errc::aborted : errc::group_misuse, text);
}

void communicator_state::wait(caf::timespan limit, status_promise promise) {
  auto number = this->limit(limit);
  waiters_.emplace(number, std::move(promise));
  wait_limits_.emplace(number, limit);
  settle();
}

void communicator_state::settle() {
  if (!operations_.empty() || !group_.empty() || changing())
    return;
  if (!waiters_.empty())
    flush_records(); // whoever is answered may ask the journal
  for (auto& waiter : waiters_) {
    waiter.second.deliver(status());
    limits_.remove(waiter.first);
  }
  waiters_.clear();
  wait_limits_.clear();
}

uint64_t communicator_state::limit(caf::timespan limit) {
  limits_.add(++waits_, self->clock().now() + limit);
  set_timer();
  return waits_;
}

void communicator_state::set_timer() {
  if (auto when = limits_.timer())
    self->delayed_send(self, std::max<caf::timespan>(*when - self->clock().now(), caf::timespan{0}), atom::expire_v);
}

void communicator_state::expire() {
  for (auto number : limits_.take_due(self->clock().now()))
    expire(number);
  set_timer();
}

void communicator_state::expire(uint64_t waiter) {
  if (calls_.count(waiter) != 0)
    return call_expired(waiter);
  if (auto limited = limited_operations_.extract(waiter))
    return end_late({limited.mapped()}, "its limit");
  auto i = waiters_.find(waiter);
  if (i == waiters_.end())
    return;
  auto answer = status();
  answer.set_error(fmt::format("waited {:.1f} s: {}", std::chrono::duration<double>{wait_limits_[waiter]}.count(),
                               explain()));
  i->second.deliver(std::move(answer));
  waiters_.erase(i);
  wait_limits_.erase(waiter);
}

void communicator_state::tell(const caf::strong_actor_ptr& receiver, const caf::message& what) {
  receiver->enqueue(self->ctrl(), caf::make_message_id(), what, self->context());
}

void communicator_state::journal(proto::Record record) {
  if (!options.journal)
    return;
  record.set_time_ns(unix_ns());
  records_.push_back(std::move(record));
  if (!flush_pending_ && !running_together_)
    flush_records();
}

void communicator_state::flush_records() {
  for (auto& record : records_)
    self->send(options.journal, std::move(record));
  records_.clear();
}

communicator_actor::behavior_type communicator(communicator_actor::stateful_pointer<communicator_state> self,
                                               communicator_options options,
                                               std::vector<gpu_sim::DeviceMetadata> devices,
                                               device_handles handles) {
  auto& state = self->state;
  state.self = self;
  state.options = std::move(options);
  self->set_down_handler([&state](const caf::down_msg& x) { state.on_down(x); });
  state.start(devices, handles);
  return {
    [&state](const gpu_sim::GetCommStatusRequest&) { return state.status(); },
    [&state](const gpu_sim::GroupStartRequest&) {
      return verdict<gpu_sim::GroupStartResponse>(state.group_problem(state.group_start()));
    },
    [&state](const gpu_sim::GroupEndRequest&) {
      return verdict<gpu_sim::GroupEndResponse>(state.group_problem(state.group_end()));
    },
    [&state](proto::CollectiveRequest& x) -> caf::result<proto::CollectiveResponse> {
      auto sequence = state.enqueue(x);
      auto answer = verdict<proto::CollectiveResponse>(sequence ? caf::error{} : sequence.error());
      answer.set_sequence(sequence ? *sequence : 0);
      if (!state.flush_pending())
        return answer;
      auto promise = state.self->make_response_promise<proto::CollectiveResponse>();
      state.answer_when_flushed(std::move(answer), promise);
      return promise;
    },
    [&state](const proto::RankCall& x) -> caf::result<proto::RankCallResponse> {
      auto promise = state.self->make_response_promise<proto::RankCallResponse>();
      state.call(x, promise);
      return promise;
    },
    [&state](const proto::CommWaitRequest& x) -> caf::result<gpu_sim::GetCommStatusResponse> {
      auto promise = state.self->make_response_promise<gpu_sim::GetCommStatusResponse>();
      state.wait(request_limit(x.timeout_ns()), promise);
      return promise;
    },
    [&state](const proto::CommAbortRequest& x) {
      state.abort(x.reason().empty() ? "aborted by a client" : "aborted by a client: " + x.reason());
      return verdict<proto::CommAbortResponse>(caf::none);
    },
    [&state](const proto::CommDestroyRequest& x) -> caf::result<proto::CommDestroyResponse> {
      auto promise = state.self->make_response_promise<proto::CommDestroyResponse>();
      state.destroy(x.reason().empty() ? "destroyed by a client" : x.reason(), promise);
      return promise;
    },
    [&state](const proto::RankReport& x) { state.on_report(x); },
    [&state](const arrived& x) { state.on_arrived(x); },
    [&state](const proto::Quiesced& x) { state.on_quiesced(x); },
    [&state](const proto::Progress& x) { state.on_progress(x); },
    [&state](atom::flush) { state.flush_plans(); },
    [&state](atom::resume, uint64_t number) { state.moved(number); },
    [&state](atom::tick) { state.tick(); },
    [&state](atom::expire) { state.expire(); },
  };
}

} // namespace ringmaster
