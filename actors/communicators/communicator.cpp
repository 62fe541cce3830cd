#include "actors/communicators/communicator.hpp"

#include "actors/calls/answers.hpp"
#include "actors/calls/request_limit.hpp"
#include "actors/communicators/journal_records.hpp"
#include "messages/received_handles.hpp"
#include "runtime/health/verdict_text.hpp"
#include "runtime/logging/log.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace ringmaster {

namespace {

/// Answers when the plans that have gathered are sent: the caller's next call must come to the streams after them.
template <class Response>
caf::result<Response> after_the_plans(communicator_actor::pointer self, outbox& out, Response answer) {
  if (!out.flush_pending())
    return answer;
  auto promise = self->make_response_promise<Response>();
  out.when_flushed([promise, answer = std::move(answer)]() mutable { promise.deliver(std::move(answer)); });
  return promise;
}

} // namespace

communicator_actor::behavior_type communicator_state::start(communicator_actor::pointer self,
                                                            communicator_options options,
                                                            const std::vector<gpu_sim::DeviceMetadata>& devices,
                                                            const device_handles& handles) {
  ensure(!devices.empty() && devices.size() == handles.size(), "a communicator has ranks, each with its handle");
  self_ = self;
  options_ = std::move(options);
  std::vector<rank_device> ranks;
  for (auto& x : devices)
    ranks.push_back({x, false});
  const auto ids = ids_of(ranks);
  epochs_.emplace(options_.id, options_.policy, std::move(ranks));
  create_objects();
  self_->set_down_handler([this](const caf::down_msg& x) { on_down(x); });
  proto::Record record;
  auto& created = *record.mutable_communicator_created();
  created.set_comm_id(options_.id.value);
  created.set_policy(options_.policy);
  created.set_deterministic(options_.deterministic);
  created.set_name(options_.name);
  for (size_t rank = 0; rank < devices.size(); ++rank) {
    actions_->add_member(devices[rank], handles[rank]);
    created.add_device_ids(ids[rank].value);
  }
  members_->set_ranks(epochs_->members().ranks());
  outbox_->journal(std::move(record));
  if (options_.coordinator)
    self_->monitor(options_.coordinator);
  actions_->announce_members();
  runner_->run_in_new_epoch();
  calls_->open(epochs_->state().epoch(), ids);
  return handlers();
}

communicator_actor::behavior_type communicator_state::resume(communicator_actor::pointer self,
                                                             communicator_options options, resumed_communicator from) {
  self_ = self;
  options_ = std::move(options);
  const auto& known = from.known;
  epochs_.emplace(options_.id, options_.policy, known);
  create_objects();
  self_->set_down_handler([this](const caf::down_msg& x) { on_down(x); });
  for (auto& rank : epochs_->members().ranks())
    if (const auto handle = from.handles.find(rank.id()); handle != from.handles.end())
      actions_->add_member(rank.metadata, handle->second);
    else // as of one that has died since it was a member
      members_->add(rank.id(), received(self_->system(), device_handle{}));
  if (options_.coordinator)
    self_->monitor(options_.coordinator);
  runner_->resume(known);
  calls_->resume(epoch_number{known.epoch.value - 1}, ids_of(epochs_->members().ranks()), known.rank_calls);
  actions_->carry_out(epochs_->resume(from.lost)); // no plan waits that would have to be sent before
  ticks_->keep_on();
  return handlers();
}

void communicator_state::create_objects() {
  outbox_.emplace(self_, options_.journal, options_.clock, options_.enqueue_order);
  members_.emplace(self_, options_);
  watch_.emplace(options_.suspect, options_.operation_limit);
  limits_.emplace([this](call_limits::time_point when) {
    self_->delayed_send(self_, std::max<caf::timespan>(when - now(), caf::timespan{0}), atom::expire_v);
  });
  runner_.emplace(self_, options_, *epochs_, *members_, *watch_, *limits_, *outbox_);
  calls_.emplace(self_, options_, *epochs_, *runner_, *limits_, *outbox_,
                 [this](epoch_change::decisions x) { actions_->carry_out(std::move(x)); });
  shared_memory_.emplace(self_, options_.movers, *epochs_, options_.id);
  reporter_.emplace(self_, options_, *epochs_, *members_, *watch_, calls_->desk(), *shared_memory_, runner_->outcomes(),
                    waiters_, *limits_, *outbox_);
  calls_->judge_by([this](errc code, proto::Verdict found) { return judge(code, std::move(found)); });
  ticks_.emplace(self_, options_.suspect.interval, *epochs_, calls_->desk());
  actions_.emplace(self_, options_, *epochs_, *members_, *watch_, *runner_, *calls_, *shared_memory_, waiters_,
                   *reporter_, *ticks_, *outbox_);
}

// -- calls ----------------------------------------------------------------------------

caf::error communicator_state::group_end() {
  const auto has_calls = runner_->close_group();
  if (!has_calls)
    return has_calls.error();
  if (!*has_calls) {
    reporter_->settle();
    return {};
  }
  if (epochs_->state().is_active())
    actions_->carry_out(epochs_->group_closed());
  runner_->run_waiting();
  ticks_->keep_on();
  return {};
}

proto::CollectiveResponses communicator_state::enqueue(proto::CollectiveRequests& requests) {
  proto::CollectiveResponses answers;
  for (auto& request : *requests.mutable_calls())
    *answers.add_answers() = runner_->enqueue_of_host(request);
  ticks_->keep_on();
  return answers;
}

void communicator_state::expire() {
  for (auto number : limits_->take_due(now())) {
    if (calls_->desk().has(number)) {
      const auto x = calls_->expire(number);
      if (!x.late.empty())
        actions_->change([&, cause = reporter_->cause()](auto& epochs) {
          return epochs.overdue(x.late, x.waited, cause);
        });
    } else if (auto sequence = limits_->take_operation(number)) {
      actions_->change([&, cause = reporter_->cause()](auto& epochs) {
        return epochs.overdue({*sequence}, "its limit", cause);
      });
    } else {
      reporter_->expire(number);
    }
  }
}

// -- members --------------------------------------------------------------------------

void communicator_state::on_report(const proto::RankReport& x) {
  if (x.phase() != proto::RankReport::FINISHED)
    for (auto& record : records_of_rank_end(x))
      outbox_->journal(std::move(record));
  if (!epochs_->operations().counts(x))
    return;
  watch_->on_report(x, now());
  if (x.phase() == proto::RankReport::BROKEN)
    actions_->change([&](auto& epochs) { return epochs.reported(x); });
  else
    actions_->carry_out(epochs_->reported(x));
}

void communicator_state::on_node_report(const proto::ProgressReport& x) {
  const auto& relay = self_->current_sender();
  if (!relay)
    return;
  auto clock = watch_->on_node_report(relay->address(), x, relay->node() == self_->node(), now(), outbox_->unix_ns());
  if (!clock)
    return;
  proto::Record record;
  *record.mutable_node_clock() = std::move(*clock);
  outbox_->journal(std::move(record));
}

void communicator_state::on_quiesced(const proto::Quiesced& x) {
  const device_id device{x.device_id()};
  const epoch_number epoch{x.epoch()};
  if (epoch == epochs_->state().epoch() && !epochs_->state().has_stopped(device))
    watch_->note_progress(now());
  actions_->carry_out(epochs_->quiesced(device, epoch));
}

void communicator_state::on_down(const caf::down_msg& x) {
  if (options_.coordinator && x.source == options_.coordinator.address()) {
    self_->quit(x.reason); // no client can reach it any longer, but an open request would keep it alive
    return;
  }
  const auto device = members_->device_of(x.source);
  if (!device)
    return;
  if (x.reason == caf::exit_reason::user_shutdown)
    return actions_->note_left(*device, render(x.reason));
  if (x.reason == caf::exit_reason::remote_link_unreachable)
    return doubt({members_->in_process_of(*device), proto::Verdict::CRASHED, render(x.reason), "monitor"});
  actions_->lose({{*device}, proto::Verdict::CRASHED, render(x.reason), "monitor"});
}

void communicator_state::doubt(epoch_actions::loss x) {
  auto& members = epochs_->members();
  std::erase_if(x.devices, [&](auto device) {
    return (!members.contains(device) && !epochs_->leaving().contains(device)) || !doubted_.insert(device).second;
  });
  if (x.devices.empty())
    return;
  const auto rank = std::ranges::find(members.ranks(), x.devices.front(), &rank_device::id);
  const auto node = rank == members.ranks().end() ? std::string{} : rank->metadata.node();
  auto settle = [this, x = std::move(x)](bool lives) mutable {
    for (auto device : x.devices)
      doubted_.erase(device);
    if (x.suspicion)
      std::erase_if(x.devices, [this](auto device) { // it has answered meanwhile
        return watch_->liveness().known(device, now()).silent <= options_.suspect.late_after;
      });
    if (x.devices.empty())
      return;
    if (lives) {
      x.kind = proto::Verdict::UNREACHABLE;
      x.cause += "; other nodes reach it, so its link to the coordinator is cut";
    }
    actions_->lose(x);
  };
  if (!options_.coordinator || node.empty())
    return settle(false);
  constexpr auto limit = std::chrono::milliseconds{200};
  proto::ProbeRequest request;
  request.set_node(node);
  self_->request(options_.coordinator, limit, std::move(request))
    .then([settle](const proto::ProbeResponse& y) mutable { settle(y.lives()); },
          [settle](const caf::error&) mutable { settle(false); });
}

void communicator_state::on_member_lost(const proto::MemberLost& x) {
  const auto kind = x.lives()           ? proto::Verdict::UNREACHABLE
                    : x.has_suspicion() ? proto::Verdict::HUNG
                                        : proto::Verdict::CRASHED;
  if (x.noticed_by().empty())
    return actions_->note_left(device_id{x.device_id()}, x.cause());
  epoch_actions::loss loss{{device_id{x.device_id()}}, kind, x.cause(), x.noticed_by()};
  if (x.has_suspicion())
    loss.suspicion = x.suspicion();
  actions_->lose(loss);
}

void communicator_state::on_way_lost(const proto::WayLost& x) {
  auto found = reporter_->waits({});
  found.set_kind(proto::Verdict::UNREACHABLE);
  found.set_evidence(x.reason().empty() ? std::string{"members have lost their connection"} : x.reason());
  for (auto& rank : epochs_->members().ranks())
    if (std::ranges::find(x.nodes(), rank.metadata.node()) != x.nodes().end())
      found.add_culprits()->set_device_id(rank.id().value);
  actions_->change([&](auto& epochs) { return epochs.way_lost(found); });
}

caf::error communicator_state::judge(errc code, proto::Verdict found) {
  if (found.sequence() == 0)
    found.set_sequence(epochs_->operations().latest().next().value);
  found.set_time_ns(outbox_->unix_ns());
  for (auto& each : epochs_->judged(found)) {
    auto& given = std::get<epoch_change::verdict_given>(each).what;
    actions_->publish(given); // not through `carry_out`, which may ask for the next calls
    return make_error(code, finding_of(given));
  }
  return make_error(code, finding_of(found));
}

void communicator_state::tick() {
  if (!ticks_->note_tick())
    return;
  auto& calls = calls_->desk();
  if (calls.open() > 0)
    options_.waiting->publish(options_.id, calls.waiting_ranks(epochs_->operations().latest().next()), now());
  const auto found = watch_->look(epochs_->members().present(), now());
  if (!found.overload.empty())
    log_info({.communicator = options_.id.value}, "communicator {}: {}", options_.id.value, found.overload);
  for (auto& [device, evidence] : found.suspects) {
    epoch_actions::loss loss{{device}, proto::Verdict::HUNG, text_of(evidence), "suspicion", true, evidence};
    if (evidence.cause() != proto::Suspicion::PROCESS_SILENT) {
      actions_->lose(loss);
    } else if (epochs_->members().contains(device)) { // else it was lost with another one of its process
      loss.devices = members_->in_process_of(device);
      doubt(std::move(loss));
    }
  }
  note_slow_members();
  if (outbox_->flush_pending())
    runner_->flush(); // plans that may wait have waited long enough
  if (!ticks_->are_needed())
    return;
  ask_for_progress();
  if (shared_memory_->has_moved())
    watch_->note_progress(now());
  auto& liveness = watch_->liveness();
  if (ticks_->something_runs() && liveness.stalled(now()) && epochs_->state().is_active()) {
    const auto limit_s = std::chrono::duration<double>{liveness.stalled_after()}.count();
    auto cause = reporter_->cause();
    cause.set_evidence(fmt::format("no progress for {:.1f} s: {}", limit_s, cause.evidence()));
    actions_->change([&](auto& epochs) { return epochs.stalled(cause); });
  }
  ticks_->keep_on();
}

void communicator_state::note_slow_members() {
  const auto present = epochs_->members().present();
  for (auto& [device, is_slow, how] : watch_->look_for_slow(present, now())) {
    proto::Record record;
    auto& slow = *record.mutable_device_slow();
    slow.set_comm_id(options_.id.value);
    slow.set_device_id(device.value);
    slow.set_has_ended(!is_slow);
    *slow.mutable_slowness() = how;
    outbox_->journal(std::move(record));
    if (!is_slow) {
      log_info({.device = device.value, .communicator = options_.id.value},
               "communicator {}: rank {} (device 0x{:x}) is slow no longer", options_.id.value,
               epochs_->members().rank_of(device), device);
      continue;
    }
    auto found = reporter_->waits(device);
    found.set_kind(proto::Verdict::SLOW);
    found.set_evidence(text_of(how));
    found.add_culprits()->set_device_id(device.value);
    actions_->carry_out(epochs_->judged(found));
  }
}

void communicator_state::ask_for_progress() {
  const auto asked = epochs_->members().present();
  proto::ProgressRequest request;
  request.set_comm_id(options_.id.value);
  request.set_number(watch_->asked(asked, now(), outbox_->unix_ns()));
  audience relays{self_};
  for (auto device : asked)
    relays.add(device, members_->handle_of(device), true);
  relays.tell(request, caf::message_priority::high);
}

// -- data of shared-memory operations -----------------------------------------------

void communicator_state::on_arrival(const shared_memory_arrival& x) {
  if (!note_arrival(x))
    return; // of an older epoch
  watch_->note_progress(now());
  move_data();
}

void communicator_state::on_arrivals(const shared_memory_arrivals& x) {
  members_->note_relayed(1);
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

void communicator_state::move_data() {
  outbox_->gather_records(true); // those of one turn go out together
  const auto until = now() + options_.turn;
  for (bool goes_on = true; goes_on;) {
    auto step = shared_memory_->next(until);
    goes_on = step.goes_on;
    if (step.progress_at)
      watch_->note_progress(*step.progress_at);
    if (!step.decisions.empty())
      actions_->carry_out(std::move(step.decisions));
    for (auto& [device, why] : step.harmed)
      actions_->lose({{device}, proto::Verdict::CRASHED, render(why), "memory", true});
  }
  const auto end = shared_memory_->end_turn();
  if (end.released) {
    proto::Release x;
    x.set_comm_id(options_.id.value);
    x.set_epoch(epochs_->state().epoch().value);
    x.set_first(end.released->first.value);
    x.set_sequence(end.released->second.value);
    members_->tell_streams(epochs_->members().present(), x);
  }
  outbox_->gather_records(false);
  outbox_->flush_records();
  if (end.is_idle)
    actions_->carry_out(epochs_->transfer_finished());
}

// -- messages -------------------------------------------------------------------------

communicator_actor::behavior_type communicator_state::handlers() {
  return {
    [this](const gpu_sim::GetCommStatusRequest& x) {
      return x.readonly() ? reporter_->status() : reporter_->report_outcome();
    },
    [this](const gpu_sim::GroupStartRequest&) { return verdict<gpu_sim::GroupStartResponse>(runner_->open_group()); },
    [this](const gpu_sim::GroupEndRequest&) { return verdict<gpu_sim::GroupEndResponse>(group_end()); },
    [this](proto::CollectiveRequest& x) {
      auto answer = runner_->enqueue_of_host(x);
      ticks_->keep_on();
      return after_the_plans(self_, *outbox_, std::move(answer));
    },
    [this](proto::CollectiveRequests& x) { return after_the_plans(self_, *outbox_, enqueue(x)); },
    [this](const proto::RankCall& x) -> caf::result<proto::RankCallResponse> {
      auto promise = self_->make_response_promise<proto::RankCallResponse>();
      calls_->call(x, promise);
      ticks_->keep_on();
      return promise;
    },
    [this](const proto::CommunicatorStatusRequest&) { return reporter_->whole_status(); },
    [this](const proto::CommWaitRequest& x) -> caf::result<gpu_sim::GetCommStatusResponse> {
      auto promise = self_->make_response_promise<gpu_sim::GetCommStatusResponse>();
      reporter_->wait(request_limit(x.timeout_ns()), promise);
      return promise;
    },
    [this](const proto::CommAbortRequest& x) {
      const auto reason = x.reason().empty() ? "aborted by a client" : "aborted by a client: " + x.reason();
      actions_->change([&](auto& epochs) { return epochs.abort(reason); });
      return verdict<proto::CommAbortResponse>(caf::none);
    },
    [this](const proto::CommDestroyRequest& x) -> caf::result<proto::CommDestroyResponse> {
      auto promise = self_->make_response_promise<proto::CommDestroyResponse>();
      actions_->destroy(x.reason().empty() ? "destroyed by a client" : x.reason(), promise);
      return promise;
    },
    [this](const proto::RankReport& x) { on_report(x); },
    [this](const proto::RankReports& x) {
      members_->note_relayed(1);
      for (auto& each : x.reports())
        on_report(each);
    },
    [this](const shared_memory_arrival& x) { on_arrival(x); },
    [this](const shared_memory_arrivals& x) { on_arrivals(x); },
    [this](const proto::Quiesced& x) { on_quiesced(x); },
    [this](const proto::Progress& x) { watch_->on_progress(x, now()); },
    [this](const proto::ProgressReport& x) { on_node_report(x); },
    [this](const proto::LeaveRequest& x) -> caf::result<proto::LeaveResponse> {
      auto promise = self_->make_response_promise<proto::LeaveResponse>();
      actions_->leave(x, promise);
      return promise;
    },
    [this](const proto::WayLost& x) { on_way_lost(x); },
    [this](const proto::CallsAcknowledged& x) {
      runner_->note_acknowledged(sequence_number{x.sequence()});
      reporter_->settle();
    },
    // The coordinator has given the device up, for another communicator.
    [this](const proto::MemberLost& x) { on_member_lost(x); },
    [this](atom::flush) { runner_->flush_gathered(); },
    [this](atom::resume, uint64_t number) {
      if (shared_memory_->is_current(number))
        move_data();
    },
    [this](atom::tick) { tick(); },
    [this](atom::expire) { expire(); },
  };
}

} // namespace ringmaster
