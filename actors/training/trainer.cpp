#include "actors/training/trainer.hpp"

#include "actors/scheduling/awaited_end.hpp"
#include "actors/training/training_rank.hpp"
#include "messages/errc.hpp"
#include "runtime/coordination/comm_name.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/memory/mapped_memory.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ringmaster::training {

namespace {

/// Whether the process of a rank has other settings than this one.
caf::error settings_differ(const rank_ready& x, const std::vector<std::string>& ours) {
  const auto [a, b] = std::ranges::mismatch(x.settings, ours);
  if (a == x.settings.end() && b == ours.end())
    return caf::none;
  return invalid(fmt::format("the process of {} trains with {}, rank 0's with {}: all need the same settings",
                             ringmaster::text_of(x.device), a == x.settings.end() ? "less" : *a,
                             b == ours.end() ? "less" : *b));
}

/// Whether a rank can have such a part of a model with this number of layers.
bool is_plausible(const kept_part& x, size_t layers) {
  return x.layer < layers && x.part.index < x.part.count && x.tensor.index < x.tensor.count;
}

} // namespace

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
    if (step == change_->step() && change_->ranks().find(device) != nullptr)
      change_->ranks().forget_parts(device);
  };
  auto actor_of = [this](device_id device) { return actors_.at(device); };
  snapshots_.emplace(self, settings_, *change_, std::move(first), actor_of, lost_parts);
  attempt_events events{.is_current = [this](uint64_t attempt) { return is_current(attempt); },
                        .progress = [this] { patience_->heard(now()); },
                        .failed = [this](const caf::error& why) { carry_out(change_->give_up(why)); }};
  exchanges_.emplace(self, events);
  deliveries_.emplace(self, settings_->job, *snapshots_, events, lost_parts);
  results_.emplace(settings_->job);
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
        else
          carry_out(x);
      },
      next);
  }
  carries_out_ = false;
}

// -- ranks and devices --

void trainer_state::add(device_id device) {
  const auto& added = change_->ranks().add(device);
  if (!settings_->starts_ranks)
    return;
  rank_settings its;
  its.job = settings_->job;
  its.coordinator = settings_->coordinator;
  its.trainer = self;
  its.device = device;
  its.place = added.place;
  its.memory_bytes = settings_->memory_bytes;
  its.shared_settings = settings_->shared_settings;
  its.helps = settings_->detached;
  auto rank = settings_->detached ? self->spawn<caf::detached>(training_rank, its) : self->spawn(training_rank, its);
  awaited_end::of(caf::actor_cast<caf::strong_actor_ptr>(rank));
  self->monitor(rank);
  ensure(!actors_.contains(device), "a device has one rank");
  actors_[device] = std::move(rank);
  change_->ranks().set_connected(device);
}

void trainer_state::ready(const rank_ready& x) {
  if (!change_->expects(x.device)
      || !self->current_sender()) // the sender's process has exited: its device is asked for
    return;
  if (change_->ranks().find(x.device) == nullptr) // in place of a device that its process has lost
    change_->ranks().add_at(x.device, x.place);
  if (!actors_.contains(x.device)) { // of another process, maybe
    auto rank = caf::actor_cast<rank_actor>(self->current_sender());
    self->monitor(rank);
    actors_[x.device] = std::move(rank);
    change_->ranks().set_connected(x.device);
  }
  const auto problem = x.problem ? x.problem : settings_differ(x, settings_->shared_settings);
  const bool is_loss = device_queries::is_loss(problem) || code_of(problem) == errc::timed_out;
  if (!problem)
    patience_->heard(now());
  carry_out(problem ? change_->refused(x.device, problem, is_loss, now()) : change_->ready(x.device, now()));
}

void trainer_state::rank_down(const caf::down_msg& x) {
  if (x.source == settings_->coordinator.address()) {
    if (change_->is_over())
      return;
    calls_.reset(); // no process can end them
    return carry_out(change_->end(make_error(errc::device_lost,
                                             fmt::format("the coordinator has exited or is unreachable, in step {}: {}",
                                                         change_->step(), render(x.reason)))));
  }
  const auto found = std::ranges::find_if(actors_, [&](auto& each) { return each.second.address() == x.source; });
  if (found == actors_.end() || change_->is_over())
    return;
  const auto device = found->first;
  actors_.erase(found);
  const bool process_exited = x.reason == caf::exit_reason::remote_link_unreachable;
  const bool may_return = !process_exited && x.reason != caf::exit_reason::user_shutdown;
  carry_out(change_->rank_exited(device, x.reason, may_return, now()));
}

void trainer_state::carry_out(const step_change::stop_rank& x) {
  const auto rank = actors_.extract(x.device);
  if (rank.empty())
    return; // its process has not reported it
  self->demonitor(rank.mapped().address());
  self->send_exit(rank.mapped(), // its process may have been paused, and tells its user
                  make_error(errc::suspected, fmt::format("the run goes on without this rank: {}", x.why)));
}

void trainer_state::carry_out(const step_change::release_rank& x) {
  if (const auto rank = actors_.extract(x.device))
    let_go(rank.mapped(), [] {});
}

void trainer_state::let_go(const rank_actor& rank, std::function<void()> then) {
  self->demonitor(rank.address());
  self->request(rank, ending_limit, run_over{})
    .then([then](uint64_t) { then(); }, [this, then, rank](const caf::error&) { // it computes, or has exited
      self->send_exit(rank, caf::exit_reason::user_shutdown);
      then();
    });
}

void trainer_state::carry_out(const step_change::search_devices& x) {
  lacks_devices_ = lacks_devices_ || x.required;
  const auto& ranks = change_->ranks();
  if (!settings_->starts_ranks || ranks.members().size() >= ranks.wanted() || change_->is_over())
    return;
  const auto count_max = ranks.wanted() + static_cast<uint32_t>(ranks.lost_count()); // some of them may be known
  queries_->find_free(count_max, [this, count_max](const std::vector<device_id>& found) {
    const auto& its = change_->ranks();
    const auto before = its.members().size();
    for (auto device : found)
      if (!change_->is_over() && its.members().size() < its.wanted() && its.find(device) == nullptr
          && !its.is_lost(device))
        add(device);
    const bool gathers = change_->now() == step_change::phase::gathering;
    lacks_devices_ = lacks_devices_ && gathers && its.members().size() < its.wanted();
    if (!lacks_devices_)
      return;
    if (its.members().size() > before || count_max < its.wanted() + its.lost_count()) // there may be more
      return carry_out(step_change::search_devices{});
    carry_out(change_->end(make_error(errc::too_few_devices,
                                      fmt::format("{} of {} are free: other clients took some, or they are lost",
                                                  its.members().size(), counted(its.wanted(), "device")))));
  });
}

void trainer_state::leaving(const rank_leaving& x) {
  carry_out(change_->asked_to_leave(x.device, "its process was asked to stop"));
}

// -- a step --

void trainer_state::carry_out(const step_change::start_step& x) {
  ensure(change_->is_current(x.attempt), "a step that starts is the current one");
  ensure(!step_ || step_->attempt < x.attempt, "attempts only rise");
  auto next = std::make_shared<running_step>();
  next->attempt = x.attempt;
  next->step = x.step;
  const auto& sides = change_->ranks().sides();
  for (auto& each : change_->ranks().world()) {
    next->devices.push_back(each.device);
    next->ranks.push_back(actors_.at(each.device));
  }
  if (!calls_) {
    group_call_settings its;
    its.coordinator = settings_->coordinator;
    its.devices = next->devices;
    its.name = as_comm_name(fmt::format("training by {}", strategy_for(*settings_->job, sides).name));
    its.as = settings_->job->as;
    its.deterministic = settings_->deterministic;
    its.limit = settings_->operation_limit;
    calls_ = std::make_shared<group_calls>(self, std::move(its));
    if (next->world_size() == 1) // others communicate soon
      calls_->hold();
  }
  next->calls = calls_;
  step_ = std::move(next);
  watcher_is_full_ = false;
  exchanges_->start(step_);
  deliveries_->start(step_);
  results_->start(step_->world_size());
  patience_->step_started(step_->world_size(), now());
  const auto& its = settings_->profile_steps;
  const bool profiled = sides == setting_of(settings_->job->shape) && x.step >= its.begin && x.step < its.end
                        && (x.step - its.begin) % settings_->profile_every == 0;
  for (uint32_t i = 0; i < step_->world_size(); ++i)
    self->send(step_->ranks[i], step_order{x.attempt, x.step, i, step_->world_size(), sides, profiled,
                                           change_->ranks().world()[i].made.empty()});
}

bool trainer_state::is_current(uint64_t attempt) const {
  return change_->is_current(attempt) && step_ && step_->attempt == attempt;
}

bool trainer_state::is_possible(uint32_t rank, bool its_content) {
  if (rank < step_->world_size() && its_content)
    return true;
  carry_out(change_->end(malformed(fmt::format("step {}: rank {} says what no rank of {} can: its process runs another "
                                               "program, or another version of this one",
                                               change_->step(), rank, step_->world_size()))));
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
  if (!is_current(x.attempt) || !is_possible(x.rank, is_plausible(x.what, settings_->job->layers.size())))
    return;
  patience_->heard_of(x.rank, now());
  deliveries_->deliver(x);
}

void trainer_state::alive(const rank_alive& x) {
  if (is_current(x.attempt) && is_possible(x.rank, true))
    patience_->heard_of(x.rank, now());
}

void trainer_state::failed(const rank_failed& x) {
  if (is_current(x.attempt) && !change_->ending()) // the failure may follow from another rank's
    carry_out(change_->rank_failed(x.why));
}

void trainer_state::finished(const rank_ended& x) {
  const auto layers = settings_->job->layers.size();
  const bool has_layers = (x.strays_at == no_layer || x.strays_at < layers)
                          && std::ranges::all_of(x.made, [&](auto& part) { return is_plausible(part, layers); });
  if (!is_current(x.attempt) || !is_possible(x.rank, has_layers))
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
  const auto step = change_->step();
  if (change_->now() != step_change::phase::stepping || !results_->all_have_finished() || change_->ending()
      || (record_ && record_->is_awaited())) // the journal gets the step before first
    return;
  if (auto why = results_->check(step, exchanges_->desk().left_behind()))
    return carry_out(change_->end(why));
  watcher_is_full_ = !settings_->watcher.has_room(step, snapshots_->is_due(step + 1));
  if (watcher_is_full_)
    return;
  const auto report = results_->report(step, change_->attempts());
  if (record_ && record_->is_kept()) {
    auto record = settings_->record(step);
    for (auto device : step_->devices)
      record.add_device_ids(device.value);
    record.set_strategy(std::string{strategy_for(*settings_->job, change_->ranks().sides()).name});
    record.set_attempts(report.attempts);
    record.set_loss(report.loss);
    record.set_seconds(report.seconds);
    record_->put(std::move(record));
  }
  settings_->watcher.step_done(report);
  if (auto events = results_->take_events(); !events.empty())
    settings_->watcher.profiled(events, report.seconds);
  patience_->step_committed();
  carry_out(change_->committed(results_->take_made(), now()));
}

void trainer_state::watcher_has_room() {
  if (!watcher_is_full_ || !change_->is_running())
    return;
  patience_->heard(now()); // nothing else was waited for
  commit();
}

// -- an attempt is given up, and the next one starts --

void trainer_state::carry_out(const step_change::abandon_step& x) {
  patience_->heard(now());
  for (auto device : x.devices) {
    auto done = [this, device, attempt = x.attempt] { carry_out(change_->gave_up(device, attempt)); };
    self->request(actors_.at(device), settings_->patience, step_abandoned{x.attempt})
      .then([done](uint64_t) { done(); },
            [this, done, device, attempt = x.attempt](const caf::error& problem) {
              if (change_->is_latest(attempt) && problem == caf::sec::request_timeout) // it hangs
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
    if (!change_->is_latest(attempt) || change_->is_over())
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
  if (!change_->is_latest(attempt) || change_->is_over())
    return;
  const auto step = change_->step();
  auto all = snapshots_->parts(step).whole();
  auto of_others = snapshots_->parts(step, false).whole();
  step_change::model_location where;
  where.missing = all ? caf::error{} : all.error();
  where.missing_without_leavers = of_others ? caf::error{} : of_others.error();
  where.snapshot_step = snapshots_->latest_step();
  carry_out(change_->resume(attempt, where, now()));
}

void trainer_state::carry_out(const step_change::hand_over& x) {
  patience_->heard(now());
  snapshots_->take(change_->step(), [this, attempt = x.attempt](const caf::expected<model_snapshot>& found) {
    carry_out(change_->handed_over(attempt, found ? caf::error{} : found.error()));
    resume(attempt);
  });
}

// -- what it waits for --

void trainer_state::tick() {
  if (change_->is_over())
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
  if (change_->is_over() || (record_ && record_->expire()))
    return;
  warn_of_silence();
  using phase = step_change::phase;
  const auto at = change_->now();
  if (at == phase::recovering)
    ask_again();
  if (auto why = change_->is_running() && calls_ ? calls_->check_overdue() : caf::error{})
    return carry_out(change_->give_up(why));
  if (at == phase::gathering && !settings_->starts_ranks)
    for (auto& each : std::vector{change_->ranks().members()})
      if (!each.connected) // its process may have exited before it could report the rank
        ask_whether_lost(each.device, change_->attempt());
  if (at == phase::stepping && record_ && record_->is_awaited() && results_->all_have_finished())
    patience_->heard(now()); // the journal has a limit of its own
  if (!patience_->is_over(now()))
    return;
  if (at == phase::gathering)
    carry_out(change_->gathering_timed_out(now()));
  else if (change_->is_running())
    step_stalled();
}

void trainer_state::ask_whether_lost(device_id device, uint64_t attempt) {
  queries_->ask_whether_lost(device, [this, device, attempt](const caf::error& lost) {
    if (lost && change_->is_latest(attempt))
      carry_out(change_->device_lost(device, lost, now()));
  });
}

void trainer_state::ask_again() {
  std::vector<device_id> devices;
  const auto at = change_->now();
  if (at == step_change::phase::recovering && !change_->awaited_ranks().empty())
    devices.assign(change_->awaited_ranks().begin(), change_->awaited_ranks().end());
  else
    for (auto& each : change_->ranks().members())
      devices.push_back(each.device);
  if (devices.empty() || !patience_->may_ask())
    return;
  patience_->asked(devices.size(), now());
  for (auto device : devices)
    queries_->ask_whether_lost(device, [this, device, attempt = change_->attempt()](const caf::error& lost) {
      patience_->answered();
      if (lost && change_->is_latest(attempt))
        carry_out(change_->device_lost(device, lost, now()));
    });
}

std::optional<std::string> trainer_state::awaited() const {
  if (auto why = change_->awaited())
    return why;
  if (!step_ || !is_current(step_->attempt) || change_->ending() || watcher_is_full_
      || (record_ && record_->is_awaited()))
    return std::nullopt;
  auto why = exchanges_->waiting();
  return why ? why : patience_->unfinished(change_->ranks().world(), results_->unfinished(), now());
}

void trainer_state::warn_of_silence() {
  if (!patience_->is_quiet(now()))
    return;
  auto why = awaited();
  if (!why)
    return;
  ask_again();
  const auto silent = patience_->silent(now());
  if (!patience_->warns(now()))
    return;
  if (patience_->coordinator_is_silent(now()))
    why = "the coordinator does not answer";
  settings_->watcher.note(fmt::format("step {} has been stalled for {}: {}; {} after {}", change_->step(),
                                      duration_text(std::chrono::floor<std::chrono::seconds>(silent)), *why,
                                      change_->now() == step_change::phase::recovering
                                        ? "a late rank is left out if its device is lost, or"
                                        : "the step is given up if a rank is lost, or",
                                      duration_text(settings_->patience)));
}

void trainer_state::step_stalled() {
  const auto waiting = exchanges_->waiting();
  const auto why = fmt::format("nothing has happened for {}, which training.patience allows{}",
                               duration_text(settings_->patience), waiting ? ": " + *waiting : "");
  std::vector<device_id> devices;
  for (auto& each : change_->ranks().world())
    devices.push_back(each.device);
  if (patience_->stalls_again(std::move(devices)))
    carry_out(
      change_->stop(make_error(errc::gave_up, fmt::format("step {} has stalled {} times with the same ranks: {}",
                                                          change_->step(), patience::stalls_max, why))));
  else
    carry_out(change_->give_up(make_error(errc::timed_out, why)));
}

// -- the end --

void trainer_state::stop() {
  carry_out(change_->stop(make_error(errc::aborted, "the run was asked to stop")));
}

void trainer_state::carry_out(const step_change::take_final_snapshot& x) {
  snapshots_->take(change_->step(), [this, attempt = x.attempt](const caf::expected<model_snapshot>& found) {
    if (!change_->is_current(attempt))
      return;
    if (!found)
      return carry_out(change_->give_up(found.error()));
    if (settings_->image_every != 0)
      snapshots_->report(*found);
    carry_out(change_->end(caf::none));
  });
}

void trainer_state::carry_out(const step_change::end_with_snapshot& x) {
  if (change_->is_over())
    return;
  if (!snapshots_->is_wanted(x.step))
    return carry_out(change_->end(x.why));
  if (x.repeated) {
    settings_->watcher.note(fmt::format("the model as of step {} could not be saved: not all of it arrived within {} s",
                                        x.step, ending_limit / std::chrono::seconds{1}));
    return carry_out(change_->end(x.why));
  }
  if (snapshots_->has(x.step)) {
    snapshots_->report(snapshots_->latest());
    return carry_out(change_->end(x.why));
  }
  self->delayed_send(self, ending_limit, atom::expire_v);
  if (x.at_once)
    carry_out(step_change::take_last_snapshot{});
}

void trainer_state::carry_out(const step_change::take_last_snapshot& x) {
  const auto step = change_->step();
  snapshots_->take(step, [this, x, step](const caf::expected<model_snapshot>& found) {
    if (change_->is_over())
      return;
    if (!found && snapshots_->parts(step).whole()) // another rank has the part that did not arrive
      return carry_out(x);
    if (found)
      snapshots_->report(*found);
    else
      settings_->watcher.note(fmt::format("the model as of step {} could not be saved: {}", step,
                                          render(found.error())));
    carry_out(change_->end(change_->ending()));
  });
}

void trainer_state::carry_out(const step_change::end_run& x) {
  ensure(change_->is_over(), "a run that ends does nothing else");
  if (record_)
    record_->note_missing();
  auto ended = [this, problem = x.problem] {
    settings_->watcher.ended(problem ? caf::expected<model_snapshot>{problem}
                                     : caf::expected<model_snapshot>{snapshots_->latest()});
    self->demonitor(settings_->coordinator.address()); // it lives on, and would keep this actor
    self->quit(problem);                               // the reason reaches ranks of other processes
  };
  auto let_ranks_go = [this, ended](const caf::error& not_closed) { // none: no stream uses the ranks' memory
    if (not_closed)
      settings_->watcher.note(render(not_closed));
    auto left = std::make_shared<size_t>(actors_.size() + 1);
    auto one_gone = [left, ended] {
      ensure(*left > 0, "every rank goes once");
      if (--*left == 0)
        ended();
    };
    for (auto& [device, rank] : actors_)
      let_go(rank, one_gone);
    one_gone();
  };
  if (calls_)
    calls_->end(let_ranks_go);
  else
    let_ranks_go(caf::none);
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
