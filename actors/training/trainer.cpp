#include "actors/training/trainer.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ringmaster::training {

void trainer_state::start(trainer_settings settings) {
  auto first = std::exchange(settings.from, {});
  settings_ = std::make_shared<trainer_settings>(std::move(settings));
  step_change::rules its;
  its.steps = settings_->steps;
  its.attempts_max = settings_->attempts_max;
  its.starts_ranks = settings_->starts_ranks;
  its.patience = settings_->patience;
  its.replacement_limit = settings_->replacement_limit;
  change_.emplace(settings_->job, static_cast<uint32_t>(settings_->devices.size()), first.step, its);
  patience_.emplace(settings_->patience, now());
  queries_.emplace(self, settings_->coordinator, settings_->operation_limit);
  auto lost_parts = [this](device_id device, uint64_t step) {
    if (step == change_->progress().step() && change_->ranks().find(device) != nullptr)
      change_->ranks().forget_parts(device);
  };
  actors_.emplace(self, settings_);
  auto actor_of = [this](device_id device) { return actors_->at(device); };
  snapshots_.emplace(self, settings_, *change_, std::move(first), actor_of, lost_parts);
  attempt_events events{.is_current = [this](uint64_t attempt) { return is_current(attempt); },
                        .progress = [this] { patience_->heard(now()); },
                        .failed = [this](const caf::error& why) { carry_out(change_->give_up(why)); }};
  exchanges_.emplace(self, events);
  deliveries_.emplace(self, settings_->job, *snapshots_, events, lost_parts);
  results_.emplace(settings_->job);
  ending_.emplace(self, settings_, *change_, *snapshots_, *actors_,
                  [this](step_change::decisions all) { carry_out(std::move(all)); });
  if (settings_->record)
    record_.emplace(self, step_record_settings{.coordinator = settings_->coordinator,
                                               .limit = settings_->operation_limit,
                                               .note = settings_->watcher.note,
                                               .confirmed = [this] { commit(); }});
  self->set_down_handler([this](const caf::down_msg& x) { rank_down(x); });
  self->monitor(settings_->coordinator);
  for (auto device : settings_->devices)
    add(device);
  self->delayed_send(self, patience::tick_interval, atom::tick_v);
}

void trainer_state::carry_out(step_change::decisions all) {
  std::ranges::move(all, std::back_inserter(decisions_));
  if (std::exchange(carries_out_, true))
    return;
  while (!decisions_.empty()) {
    const auto next = std::move(decisions_.front());
    decisions_.pop_front();
    std::visit(
      [this](auto& x) {
        using type = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<type, step_change::note>)
          settings_->watcher.note(x.text);
        else if constexpr (std::is_same_v<type, step_change::take_snapshot>)
          snapshots_->keep(x.step);
        else if constexpr (std::is_same_v<type, step_change::repeat_snapshot>)
          snapshots_->repeat(x.step);
        else if constexpr (std::is_same_v<type, step_change::stop_rank>)
          actors_->stop(x.device, x.why);
        else if constexpr (std::is_same_v<type, step_change::release_rank>)
          actors_->release(x.device);
        else if constexpr (std::is_same_v<type, step_change::take_final_snapshot>)
          ending_->take_final_snapshot(x.attempt);
        else if constexpr (std::is_same_v<type, step_change::end_with_snapshot>)
          ending_->end_with_snapshot(x);
        else if constexpr (std::is_same_v<type, step_change::take_last_snapshot>)
          ending_->take_last_snapshot();
        else
          carry_out(x);
      },
      next);
  }
  carries_out_ = false;
}

// -- ranks and devices --

void trainer_state::add(device_id device) {
  const auto place = change_->ranks().add(device).place;
  if (!settings_->starts_ranks)
    return;
  actors_->start(device, place);
  change_->ranks().set_connected(device);
}

void trainer_state::ready(const rank_ready& x) {
  auto& ranks = change_->ranks();
  if (progress().is_over() || !ranks.expects(x.device)
      || !self->current_sender()) // the sender's process has exited: its device is asked for
    return;
  if (ranks.find(x.device) == nullptr) // in place of a device that its process has lost
    ranks.add_at(x.device, x.place);
  if (!actors_->contains(x.device)) { // of another process, maybe
    actors_->add(x.device, caf::actor_cast<rank_actor>(self->current_sender()));
    ranks.set_connected(x.device);
  }
  const auto problem = actors_->problem_of(x);
  const bool is_loss = device_queries::is_loss(problem) || code_of(problem) == errc::timed_out;
  if (!problem)
    patience_->heard(now());
  carry_out(problem ? change_->refused(x.device, problem, is_loss, now()) : change_->ready(x.device, now()));
}

void trainer_state::rank_down(const caf::down_msg& x) {
  if (progress().is_over())
    return;
  if (x.source == settings_->coordinator.address()) {
    calls_.reset(); // no process can end them
    return carry_out(change_->end(make_error(errc::device_lost,
                                             fmt::format("the coordinator has exited or is unreachable, in step {}: {}",
                                                         progress().step(), render(x.reason)))));
  }
  const auto device = actors_->exited(x);
  if (!device)
    return;
  const bool process_exited = x.reason == caf::exit_reason::remote_link_unreachable;
  const bool may_return = !process_exited && x.reason != caf::exit_reason::user_shutdown;
  carry_out(change_->rank_exited(*device, x.reason, may_return, now()));
}

void trainer_state::carry_out(const step_change::search_devices& x) {
  if (settings_->starts_ranks)
    queries_->find_missing(
      *change_, x.required, [this](device_id device) { add(device); },
      [this](const caf::error& why) { carry_out(change_->end(why)); });
}

void trainer_state::leaving(const rank_leaving& x) {
  carry_out(change_->asked_to_leave(x.device, "its process was asked to stop"));
}

// -- a step --

void trainer_state::carry_out(const step_change::start_step& x) {
  ensure(progress().is_current(x.attempt), "a step that starts is the current one");
  ensure(!step_ || step_->attempt < x.attempt, "attempts only rise");
  const auto& ranks = change_->ranks();
  auto next = std::make_shared<running_step>();
  next->attempt = x.attempt;
  next->step = x.step;
  for (auto& each : ranks.world()) {
    next->devices.push_back(each.device);
    next->ranks.push_back(actors_->at(each.device));
  }
  if (!calls_)
    calls_ = make_group_calls(self, *settings_, next->devices, ranks.sides());
  next->calls = calls_;
  step_ = std::move(next);
  watcher_is_full_ = false;
  exchanges_->start(step_);
  deliveries_->start(step_);
  results_->start(step_->world_size());
  patience_->step_started(step_->world_size(), now());
  const bool profiled = ranks.sides() == setting_of(settings_->job->shape) && settings_->profiles(x.step);
  for (uint32_t i = 0; i < step_->world_size(); ++i)
    self->send(step_->ranks[i], step_order{x.attempt, x.step, i, step_->world_size(), ranks.sides(), profiled,
                                           ranks.world()[i].made.empty()});
}

bool trainer_state::is_current(uint64_t attempt) const {
  return progress().is_current(attempt) && step_ && step_->attempt == attempt;
}

bool trainer_state::is_possible(uint32_t rank, bool its_content) {
  if (rank < step_->world_size() && its_content)
    return true;
  carry_out(change_->end(malformed(fmt::format("step {}: rank {} says what no rank of {} can: its process runs another "
                                               "program, or another version of this one",
                                               progress().step(), rank, step_->world_size()))));
  return false;
}

void trainer_state::arrived(std::vector<rank_arrival>& all) {
  for (auto& each : all) {
    if (!is_current(each.attempt) || !is_possible(each.rank, step_exchanges::is_possible(each, step_->world_size())))
      continue;
    patience_->heard_of(each.rank, now());
    if (auto problem = exchanges_->arrive(each))
      carry_out(change_->program_failed(problem));
  }
  if (step_ && is_current(step_->attempt) && !is_stuck())
    exchanges_->flush();
}

void trainer_state::found(const room_found& x) {
  if (!is_current(x.attempt) || !is_possible(x.rank, exchanges_->is_awaited(x)))
    return;
  patience_->heard_of(x.rank, now());
  exchanges_->found(x);
}

void trainer_state::wanted(const part_wanted& x) {
  if (!is_current(x.attempt) || !is_possible(x.rank, deliveries_->is_possible(x)))
    return;
  patience_->heard_of(x.rank, now());
  deliveries_->deliver(x);
}

void trainer_state::alive(const rank_alive& x) {
  if (is_current(x.attempt) && is_possible(x.rank, true))
    patience_->heard_of(x.rank, now());
}

void trainer_state::failed(const rank_failed& x) {
  if (is_current(x.attempt) && !progress().ending()) // the failure may follow from another rank's
    carry_out(change_->rank_failed(x.why));
}

void trainer_state::finished(const rank_ended& x) {
  if (!is_current(x.attempt) || !is_possible(x.rank, results_->is_possible(x)))
    return;
  patience_->heard_of(x.rank, now());
  results_->add(x);
  if (!is_stuck())
    commit();
}

bool trainer_state::is_stuck() {
  const auto why = exchanges_->desk().stuck([this](uint32_t rank) { return results_->has_finished(rank); });
  if (why)
    carry_out(change_->program_failed(why));
  return static_cast<bool>(why);
}

void trainer_state::commit() {
  const auto step = progress().step();
  if (progress().now() != step_change::phase::stepping || !results_->all_have_finished() || progress().ending()
      || (record_ && record_->is_awaited())) // the journal gets the step before first
    return;
  if (auto why = results_->check(step, exchanges_->desk().left_behind()))
    return carry_out(change_->end(why));
  watcher_is_full_ = !settings_->watcher.has_room(step, snapshots_->is_due(step + 1));
  if (watcher_is_full_)
    return;
  const auto report = results_->report(step, progress().attempts());
  if (record_ && record_->is_kept())
    record_->put(settings_->record(step), *step_, strategy_for(*settings_->job, change_->ranks().sides()).name, report);
  settings_->watcher.step_done(report);
  if (auto events = results_->take_events(); !events.empty())
    settings_->watcher.profiled(events, report.seconds);
  patience_->step_committed();
  carry_out(change_->committed(results_->take_made(), now()));
}

void trainer_state::watcher_has_room() {
  if (!watcher_is_full_ || !progress().is_running())
    return;
  patience_->heard(now()); // nothing else was waited for
  commit();
}

// -- an attempt is given up, and the next one starts --

void trainer_state::carry_out(const step_change::abandon_step& x) {
  patience_->heard(now());
  for (auto device : x.devices) {
    auto done = [this, device, attempt = x.attempt] { carry_out(change_->gave_up(device, attempt)); };
    self->request(actors_->at(device), settings_->patience, step_abandoned{x.attempt})
      .then([done](uint64_t) { done(); },
            [this, done, device, attempt = x.attempt](const caf::error& problem) {
              if (progress().is_latest(attempt) && problem == caf::sec::request_timeout) // it hangs
                carry_out(change_->device_lost(
                  device, make_error(errc::timed_out, "its rank did not give up its step in time"), now()));
              done();
            });
    // A rank's exit can be reported late, or never.
    queries_->ask_whether_lost(device, [this, device, attempt = x.attempt](const caf::error& lost) {
      carry_out(change_->coordinator_answered(attempt, device, lost, now()));
    });
  }
}

void trainer_state::carry_out(const step_change::close_communicators& x) {
  if (!calls_)
    return carry_out(change_->communicators_closed(x.attempt, caf::none));
  calls_->end([this, attempt = x.attempt](const caf::error& problem) {
    if (!progress().is_latest(attempt) || progress().is_over())
      return;
    calls_.reset();
    carry_out(change_->communicators_closed(attempt, problem));
  });
}

void trainer_state::carry_out(const step_change::resume_later& x) {
  if (x.delay.count() > 0)
    self->delayed_send(self, x.delay, atom::resume_v, x.attempt);
  else
    self->send(self, atom::resume_v, x.attempt);
}

void trainer_state::resume(uint64_t attempt) {
  if (!progress().is_latest(attempt) || progress().is_over())
    return;
  carry_out(change_->resume(attempt, snapshots_->location(), now()));
}

void trainer_state::carry_out(const step_change::hand_over& x) {
  patience_->heard(now());
  snapshots_->take(progress().step(), [this, attempt = x.attempt](const caf::expected<model_snapshot>& found) {
    carry_out(change_->handed_over(attempt, found ? caf::error{} : found.error()));
    resume(attempt);
  });
}

// -- what it waits for --

void trainer_state::tick() {
  if (progress().is_over())
    return;
  self->delayed_send(self, patience::tick_interval, atom::tick_v);
  carry_out(step_change::search_devices{});
  if (settings_->starts_ranks) // processes that are ranks are not drained: they are asked to stop
    queries_->find_drained([this](const std::map<device_id, std::string>& drained) {
      std::set<device_id> devices;
      for (auto& [device, why] : drained) {
        devices.insert(device);
        carry_out(change_->asked_to_leave(device, why));
      }
      change_->keep_leaving(devices);
    });
  if (const auto late = patience_->tick(now()); late.count() > 0) {
    snapshots_->excuse(late);
    if (record_)
      record_->excuse(late);
    if (calls_)
      calls_->excuse(late);
  }
  watcher_has_room();
  snapshots_->expire();
  if (progress().is_over() || (record_ && record_->expire()))
    return;
  warn_of_silence();
  using phase = step_change::phase;
  const auto at = progress().now();
  if (at == phase::recovering)
    ask_again();
  if (auto why = progress().is_running() && calls_ ? calls_->check_overdue() : caf::error{})
    return carry_out(change_->give_up(why));
  if (at == phase::gathering && !settings_->starts_ranks)
    for (auto& each : std::vector{change_->ranks().members()})
      if (!each.connected) // its process may have exited before it could report the rank
        ask_whether_lost(each.device, progress().attempt());
  if (at == phase::stepping && record_ && record_->is_awaited() && results_->all_have_finished())
    patience_->heard(now()); // the journal has a limit of its own
  if (!patience_->is_over(now()))
    return;
  if (at == phase::gathering)
    carry_out(change_->gathering_timed_out(now()));
  else if (progress().is_running())
    step_stalled();
}

void trainer_state::ask_whether_lost(device_id device, uint64_t attempt) {
  queries_->ask_whether_lost(device, [this, device, attempt](const caf::error& lost) {
    if (lost && progress().is_latest(attempt))
      carry_out(change_->device_lost(device, lost, now()));
  });
}

void trainer_state::ask_again() {
  const auto& awaited = change_->teardown().awaited_ranks();
  std::vector<device_id> devices{awaited.begin(), awaited.end()};
  if (progress().now() != step_change::phase::recovering || devices.empty()) {
    devices.clear();
    for (auto& each : change_->ranks().members())
      devices.push_back(each.device);
  }
  if (devices.empty() || !patience_->may_ask())
    return;
  patience_->asked(devices.size(), now());
  for (auto device : devices)
    queries_->ask_whether_lost(device, [this, device, attempt = progress().attempt()](const caf::error& lost) {
      patience_->answered();
      if (lost && progress().is_latest(attempt))
        carry_out(change_->device_lost(device, lost, now()));
    });
}

std::optional<std::string> trainer_state::awaited() const {
  if (auto why = change_->teardown().awaited())
    return why;
  if (!step_ || !is_current(step_->attempt) || progress().ending() || watcher_is_full_
      || (record_ && record_->is_awaited()))
    return std::nullopt;
  auto why = exchanges_->waiting();
  return why ? why : patience_->unfinished(change_->ranks().world(), results_->unfinished(), now());
}

void trainer_state::warn_of_silence() {
  if (!patience_->is_quiet(now()))
    return;
  const auto why = awaited();
  if (!why)
    return;
  ask_again();
  const bool recovers = progress().now() == step_change::phase::recovering;
  if (const auto text = patience_->warning(progress().step(), *why, recovers, now()))
    settings_->watcher.note(*text);
}

void trainer_state::step_stalled() {
  const auto why = patience_->stalled(progress().step(), change_->ranks().world(), exchanges_->waiting());
  carry_out(code_of(why) == errc::gave_up ? change_->stop(why) : change_->give_up(why));
}

// -- the end --

void trainer_state::stop() {
  carry_out(change_->stop(make_error(errc::aborted, "the run was asked to stop")));
}

void trainer_state::carry_out(const step_change::end_run& x) {
  if (record_)
    record_->note_missing();
  ending_->end(calls_, x.problem);
}

trainer_actor::behavior_type trainer(trainer_actor::stateful_pointer<trainer_state> self, trainer_settings settings) {
  auto& state = self->state;
  state.self = self;
  state.start(std::move(settings));
  return {[&state](const rank_ready& x) { state.ready(x); },
          [&state](std::vector<rank_arrival>& all) { state.arrived(all); },
          [&state](const room_found& x) { state.found(x); },
          [&state](const part_wanted& x) { state.wanted(x); },
          [&state](const rank_ended& x) { state.finished(x); },
          [&state](const rank_failed& x) { state.failed(x); },
          [&state](const rank_alive& x) { state.alive(x); },
          [&state](const rank_leaving& x) { state.leaving(x); },
          [&state](atom::expire) { state.stop(); },
          [&state](atom::resume) { state.watcher_has_room(); },
          [&state](atom::tick) { state.tick(); },
          [&state](atom::resume, uint64_t attempt) { state.resume(attempt); }};
}

} // namespace ringmaster::training
