// A COMMUNICATOR's start, its messages, its timers, and data that it moves.
#include "actors/communicators/communicator_actions.hpp"

#include "actors/calls/answers.hpp"
#include "actors/calls/request_limit.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace ringmaster {

void communicator_state::start(const std::vector<gpu_sim::DeviceMetadata>& devices, const device_handles& handles) {
  ensure(!devices.empty() && devices.size() == handles.size(), "a communicator has ranks, each with its handle");
  outbox_.emplace(self, options.journal, options.clock, options.enqueue_order);
  members_.emplace(self, options);
  planner_.emplace(options);
  desk_.emplace(options.id);
  desk_->look_elsewhere([this](device_id x) { return options.waiting->elsewhere(x, options.id, now()); });
  watch_.emplace(options.suspect, options.operation_limit);
  proto::Record record;
  auto& created = *record.mutable_communicator_created();
  created.set_comm_id(options.id.value);
  created.set_policy(options.policy);
  created.set_deterministic(options.deterministic);
  created.set_name(options.name);
  std::vector<rank_device> ranks;
  std::vector<device_id> ids;
  for (size_t rank = 0; rank < devices.size(); ++rank) {
    ranks.push_back({devices[rank], false});
    ids.push_back(ranks.back().id());
    add_member(devices[rank], handles[rank]);
    created.add_device_ids(ids.back().value);
  }
  epochs_.emplace(options.id, options.policy, std::move(ranks));
  members_->set_ranks(epochs_->ranks());
  planner_->set_hosts(members_->hosts());
  shared_memory_.emplace(self, options.movers, *epochs_);
  outbox_->journal(std::move(record));
  if (options.coordinator)
    self->monitor(options.coordinator);
  rank_calls_.answer_at_exit(self, options.id);
  epoch_actions{*this}.announce_members();
  desk_->set_ranks(epochs_->epoch(), std::move(ids));
}

void communicator_state::add_member(const gpu_sim::DeviceMetadata& metadata, const device_handle& handle) {
  const auto device = id_of(metadata);
  members_->add(device, handle);
  watch_->add(device, handle);
  desk_->name(device, text_of(metadata));
}

std::vector<device_id> communicator_state::present_members() const {
  std::vector<device_id> result;
  for (auto& x : epochs_->ranks())
    if (!x.lost)
      result.push_back(x.id());
  return result;
}

// -- what has gathered --------------------------------------------------------------

void communicator_state::flush() {
  auto& ranks = epochs_->ranks();
  note_relayed(outbox_->flush(members_->handles_of(ranks), members_->streams_of(ids_of(ranks)), operations(),
                              planner_->may_fuse(ranks)));
}

void communicator_state::flush_gathered() {
  if (!outbox_->flush_pending())
    return outbox_->wait(); // the plans went out with something else
  auto& queue = operations().in_flight();
  const bool others_run = std::any_of(queue.begin(), queue.end(), [&](auto& op) {
    return op.state == operation::phase::running && op.sequence < outbox_->first();
  });
  if (others_run && outbox_->may_wait())
    outbox_->wait();
  else
    flush();
}

// -- data of shared-memory operations -----------------------------------------------

void communicator_state::on_arrival(const shared_memory_arrival& x) {
  if (!note_arrival(x))
    return; // of an older epoch
  watch_->note_progress(now());
  move_data();
}

void communicator_state::on_arrivals(const shared_memory_arrivals& x) {
  ++control_messages_;
  bool any_counts = false;
  for (size_t i = 0; i < x.devices.size(); ++i)
    any_counts = note_arrival({x.communicator, x.epoch, x.sequence, x.devices[i],
                               i < x.memories.size() ? x.memories[i] : nullptr})
                 || any_counts;
  if (!any_counts)
    return;
  watch_->note_progress(now());
  move_data();
}

bool communicator_state::note_arrival(const shared_memory_arrival& x) {
  const bool is_elsewhere = x.memory == nullptr;
  return shared_memory_->on_arrival(x.device, x.epoch, x.sequence,
                                    is_elsewhere ? members_->memory_of(x.device) : x.memory, is_elsewhere);
}

void communicator_state::resume_moving(uint64_t number) {
  if (shared_memory_->is_current(number))
    move_data();
}

void communicator_state::move_data() {
  outbox_->gather_records(true); // those of one turn go out together
  const auto until = now() + options.turn;
  for (bool goes_on = true; goes_on;) {
    auto step = shared_memory_->next(until);
    goes_on = step.goes_on;
    if (step.progress_at)
      watch_->note_progress(*step.progress_at);
    if (!step.decisions.empty())
      carry_out(std::move(step.decisions));
    for (auto& [device, why] : step.harmed)
      lose(device, render(why), "memory", true);
  }
  const auto end = shared_memory_->end_turn();
  if (end.released) {
    proto::Release x;
    x.set_comm_id(options.id.value);
    x.set_epoch(epochs_->epoch().value);
    x.set_first(end.released->first.value);
    x.set_sequence(end.released->second.value);
    note_relayed(members_->streams_of(present_members()).tell(x));
  }
  outbox_->gather_records(false);
  outbox_->flush_records();
  if (end.is_idle)
    carry_out(epochs_->transfer_finished());
}

// -- limits ---------------------------------------------------------------------------

void communicator_state::set_timer() {
  if (const auto when = limits_.timer())
    self->delayed_send(self, std::max<caf::timespan>(*when - now(), caf::timespan{0}), atom::expire_v);
}

void communicator_state::expire() {
  for (auto number : limits_.take_due(now())) {
    if (desk_->has(number)) {
      const auto x = desk_->expire(number, operations().latest().next(), outcomes_.latest_text(), now());
      serve_calls();
      if (!x.late.empty())
        change([&, doing = explain(view(), options.id)](auto& epochs) {
          return epochs.overdue(x.late, x.waited, doing);
        });
    } else if (auto sequence = limits_.take_operation(number)) {
      change([&, doing = explain(view(), options.id)](auto& epochs) {
        return epochs.overdue({*sequence}, "its limit", doing);
      });
    } else if (auto waiter = waiters_.take_expired(number)) {
      auto answer = status();
      const auto limit_s = std::chrono::duration<double>{waiter->limit}.count();
      set_error_in(answer, make_error(errc::timed_out,
                                      fmt::format("waited {:.1f} s: {}", limit_s, explain(view(), options.id))));
      waiter->promise.deliver(std::move(answer));
    }
  }
  set_timer();
}

void communicator_state::settle() {
  if (!waiters_.any_waits_for_idle() || !operations().idle() || epochs_->state().is_changing())
    return;
  outbox_->flush_records(); // a client that is answered may ask the journal
  for (auto& x : waiters_.take_idle_waiters()) {
    x.promise.deliver(report_outcome());
    limits_.remove(x.limit_number);
  }
}

// -- watching -------------------------------------------------------------------------

/// Also while ranks wait for others' calls: a process that is paused makes none.
void communicator_state::keep_ticking() {
  if (ticking_ || (!something_runs() && desk_->open() == 0))
    return;
  ticking_ = true;
  self->delayed_send<caf::message_priority::high>(self, options.suspect.interval, atom::tick_v);
}

void communicator_state::tick() {
  ensure(ticking_, "a tick was asked for");
  ticking_ = false;
  if (desk_->open() > 0)
    options.waiting->publish(options.id, desk_->waiting_ranks(operations().latest().next()), now());
  const auto found = watch_->look(present_members(), now());
  if (!found.overload.empty())
    spdlog::info("communicator {}: {}", options.id.value, found.overload);
  for (auto& [device, reason] : found.suspects)
    lose(device, reason, "suspicion", true);
  if (outbox_->flush_pending())
    flush(); // plans that may wait have waited long enough
  if (!something_runs() && desk_->open() == 0)
    return;
  const auto asked = present_members();
  proto::ProgressRequest request;
  request.set_comm_id(options.id.value);
  request.set_number(watch_->asked(asked, now(), outbox_->unix_ns()));
  audience relays{self};
  for (auto device : asked)
    relays.add(device, members_->handle_of(device), true);
  relays.tell(request, caf::message_priority::high);
  if (shared_memory_->has_moved())
    watch_->note_progress(now());
  auto& liveness = watch_->liveness();
  if (something_runs() && liveness.stalled(now()) && epochs_->state().is_active()) {
    const auto limit_s = std::chrono::duration<double>{liveness.stalled_after()}.count();
    const auto reason = fmt::format("no progress for {:.1f} s: {}", limit_s, explain(view(), options.id));
    change([&](auto& epochs) { return epochs.stalled(reason); });
  }
  keep_ticking();
}

communicator_actor::behavior_type communicator(communicator_actor::stateful_pointer<communicator_state> self,
                                               communicator_options options,
                                               std::vector<gpu_sim::DeviceMetadata> devices, device_handles handles) {
  auto& state = self->state;
  state.self = self;
  state.options = std::move(options);
  self->set_down_handler([&state](const caf::down_msg& x) { state.on_down(x); });
  state.start(devices, handles);
  return {
    [&state](const gpu_sim::GetCommStatusRequest& x) { return x.readonly() ? state.status() : state.report_outcome(); },
    [&state](const gpu_sim::GroupStartRequest&) { return verdict<gpu_sim::GroupStartResponse>(state.group_start()); },
    [&state](const gpu_sim::GroupEndRequest&) { return verdict<gpu_sim::GroupEndResponse>(state.group_end()); },
    [&state](proto::CollectiveRequest& x) { return state.collective(x); },
    [&state](proto::CollectiveRequests& x) { return state.collectives(x); },
    [&state](const proto::RankCall& x) -> caf::result<proto::RankCallResponse> {
      auto promise = state.self->make_response_promise<proto::RankCallResponse>();
      state.call(x, promise);
      return promise;
    },
    [&state](const proto::CommunicatorStatusRequest&) { return state.whole_status(); },
    [&state](const proto::CommWaitRequest& x) -> caf::result<gpu_sim::GetCommStatusResponse> {
      auto promise = state.self->make_response_promise<gpu_sim::GetCommStatusResponse>();
      state.wait(request_limit(x.timeout_ns()), promise);
      return promise;
    },
    [&state](const proto::CommAbortRequest& x) {
      const auto reason = x.reason().empty() ? "aborted by a client" : "aborted by a client: " + x.reason();
      state.change([&](auto& epochs) { return epochs.abort(reason); });
      return verdict<proto::CommAbortResponse>(caf::none);
    },
    [&state](const proto::CommDestroyRequest& x) -> caf::result<proto::CommDestroyResponse> {
      auto promise = state.self->make_response_promise<proto::CommDestroyResponse>();
      state.destroy(x.reason().empty() ? "destroyed by a client" : x.reason(), promise);
      return promise;
    },
    [&state](const proto::RankReport& x) { state.on_report(x); },
    [&state](const proto::RankReports& x) {
      state.note_relayed(1);
      for (auto& each : x.reports())
        state.on_report(each);
    },
    [&state](const shared_memory_arrival& x) { state.on_arrival(x); },
    [&state](const shared_memory_arrivals& x) { state.on_arrivals(x); },
    [&state](const proto::Quiesced& x) { state.on_quiesced(x); },
    [&state](const proto::Progress& x) { state.on_progress(x); },
    [&state](const proto::ProgressReport& x) { state.on_node_report(x); },
    [&state](const proto::LeaveRequest& x) -> caf::result<proto::LeaveResponse> {
      auto promise = state.self->make_response_promise<proto::LeaveResponse>();
      state.leave(x, promise);
      return promise;
    },
    [&state](const proto::WayLost& x) {
      const auto reason = x.reason().empty() ? std::string{"members have lost their connection"} : x.reason();
      state.change([&](auto& epochs) { return epochs.way_lost(reason); });
    },
    // The coordinator has given the device up, for another communicator.
    [&state](const proto::MemberLost& x) { state.lose(device_id{x.device_id()}, x.cause(), x.noticed_by(), false); },
    [&state](atom::flush) { state.flush_gathered(); },
    [&state](atom::resume, uint64_t number) { state.resume_moving(number); },
    [&state](atom::tick) { state.tick(); },
    [&state](atom::expire) { state.expire(); },
  };
}

} // namespace ringmaster
