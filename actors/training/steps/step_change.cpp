#include "actors/training/steps/step_change.hpp"

#include "runtime/memory/mapped_memory.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace ringmaster::training {

namespace {

std::string text_of_problem(const caf::error& x) {
  return x ? render(x) : std::string{};
}

} // namespace

step_change::step_change(std::shared_ptr<const training_job> job, uint32_t wanted, uint64_t first_step, rules its)
  : job_(job), rules_(its), ranks_(std::move(job), wanted, its.starts_ranks), progress_(first_step, its.steps) {}

void step_change::check() const {
  progress_.check();
  const bool may_tear_down = progress_.now() == phase::recovering || progress_.is_over();
  ensure(may_tear_down || teardown_.is_complete(), "ranks give up and answers are awaited in recovery only");
  ensure(may_tear_down || !teardown_.is_handing_over(), "ranks hand over in recovery only");
  ensure(std::ranges::all_of(teardown_.awaited_ranks(), [&](auto x) { return ranks_.find(x) != nullptr; }),
         "ranks that give up are members");
}

std::string step_change::state_text() const {
  return fmt::format("{}, {}{}; {}", progress_.state_text(), teardown_.state_text(), joins_ ? ", ranks join" : "",
                     ranks_.state_text());
}

// -- who takes part --

step_change::decisions step_change::ready(device_id device, time_point now) {
  ensure(!progress_.is_over() && ranks_.expects(device), "a rank becomes ready while it is expected");
  decisions out;
  ranks_.set_ready(device);
  if (progress_.now() == phase::gathering)
    all_gathered(out, now);
  else {
    out.emplace_back(note{fmt::format("{} has joined, from the next step on", ringmaster::text_of(device))});
    joins_ = true;
  }
  check();
  return out;
}

step_change::decisions step_change::refused(device_id device, const caf::error& problem, bool is_loss, time_point now) {
  ensure(!progress_.is_over() && ranks_.find(device) != nullptr, "a rank that refuses was expected");
  ensure(static_cast<bool>(problem), "a rank refuses for a reason");
  decisions out;
  // Another program has taken the memory since the device was found free.
  const bool taken = rules_.starts_ranks && code_of(problem) == errc::out_of_memory;
  if (progress_.now() == phase::gathering && !is_loss && !taken
      && ranks_.lost_count() == 0) { // any other rank would refuse, too
    end(out, problem);
    return out;
  }
  out.emplace_back(note{fmt::format("{} cannot join: {}{}", ringmaster::text_of(device),
                                    taken ? "another program has memory there: " : "", render(problem))});
  out.emplace_back(stop_rank{device, render(problem)});
  const bool takes_part = progress_.is_running() && ranks_.is_in_world(device);
  ranks_.lose(device, true);
  gave_up(out, device);
  if (takes_part) // its process runs another program, for it was ready before
    give_up(out, problem);
  else if (progress_.now() == phase::gathering && taken)
    out.emplace_back(search_devices{true});
  else if (progress_.now() == phase::gathering)
    all_gathered(out, now);
  check();
  return out;
}

step_change::decisions step_change::rank_exited(device_id device, const caf::error& why, bool may_return,
                                                time_point now) {
  decisions out;
  if (progress_.is_over() || ranks_.find(device) == nullptr)
    return out;
  const bool takes_part = progress_.is_running() && ranks_.is_in_world(device);
  const auto what = fmt::format("{} is lost: {}", ringmaster::text_of(device), render(why));
  ranks_.lose(device, may_return);
  if (takes_part) {
    give_up(out, make_error(errc::device_lost, what));
  } else {
    out.emplace_back(note{what});
    bystander_lost(out, device);
    if (progress_.now() == phase::gathering)
      all_gathered(out, now);
  }
  check();
  return out;
}

step_change::decisions step_change::device_lost(device_id device, const caf::error& lost, time_point now) {
  decisions out;
  if (progress_.is_over() || ranks_.find(device) == nullptr)
    return out; // its rank has exited, too
  ensure(static_cast<bool>(lost), "a device is lost for a reason");
  const bool takes_part = progress_.is_running() && ranks_.is_in_world(device);
  const auto why = fmt::format("{} is lost: {}", ringmaster::text_of(device), cause_of(lost));
  out.emplace_back(note{why});
  out.emplace_back(stop_rank{device, why});
  ranks_.lose(device, true); // its process may only be paused
  bystander_lost(out, device);
  if (takes_part)
    give_up(out, make_error(errc::device_lost, fmt::format("{} is lost", ringmaster::text_of(device))));
  else if (progress_.now() == phase::gathering)
    all_gathered(out, now);
  check();
  return out;
}

void step_change::bystander_lost(decisions& out, device_id device) {
  gave_up(out, device);
  if (teardown_.end_handing_over()) // the answers to the old requests do not count
    out.emplace_back(resume_later{progress_.start_attempt(), caf::timespan{0}});
}

step_change::decisions step_change::gathering_timed_out(time_point now) {
  ensure(progress_.now() == phase::gathering, "ranks are gathered before the first step");
  decisions out;
  std::vector<rank_roster::member> late;
  for (auto& each : ranks_.members())
    if (!each.ready)
      late.push_back(each);
  for (auto& each : late) {
    if (each.connected) {
      out.emplace_back(stop_rank{each.device, "it was not ready in time"});
      ranks_.lose(each.device, false);
    } else
      ranks_.remove_unconnected(each.device);
    out.emplace_back(note{fmt::format("{} has not become ready within {}", ringmaster::text_of(each.device),
                                      duration_text(rules_.patience))});
  }
  ensure(ranks_.all_are_ready(), "all ranks that are left are ready");
  all_gathered(out, now);
  check();
  return out;
}

void step_change::all_gathered(decisions& out, time_point now) {
  if (ranks_.all_are_ready())
    start(out, now);
}

// -- an attempt --

void step_change::start(decisions& out, time_point now) {
  ensure(teardown_.is_complete(), "a step starts when every rank has given up the last attempt");
  ensure(!progress_.all_steps_are_done(), "a step that starts is one of the run's");
  ensure(!progress_.ending(), "no step starts in a run that is to end");
  progress_.enter(phase::stepping);
  if (auto text = ranks_.choose_world(progress_.step(), teardown_.communicators_are_open()); !text.empty())
    out.emplace_back(note{std::move(text)});
  if (ranks_.world_size() == 0)
    return await_devices(out, now);
  short_since_.reset();
  if (!progress_.try_again(rules_.attempts_max))
    return end_with_model(out,
                          make_error(errc::gave_up, fmt::format("step {} has failed {} times, the last time because {}",
                                                                progress_.step(), rules_.attempts_max,
                                                                text_of_problem(latest_problem_))));
  teardown_.attempt_started();
  out.emplace_back(start_step{progress_.start_attempt(), progress_.step()});
}

void step_change::await_devices(decisions& out, time_point now) {
  ensure(!teardown_.communicators_are_open(), "communicators have ended when there are too few ranks");
  const auto count = static_cast<uint32_t>(ranks_.members().size());
  auto why = count == 0 ? make_error(errc::device_lost, "no rank is left") : job_->strategy->check(job_->shape, count);
  if (!why || step_world_of(*job_, count).ranks > 0) // it is possible, but those that were tried have failed
    why = make_error(errc::gave_up, text_of_problem(latest_problem_));
  const auto what = fmt::format("step {} cannot be run by {}: {}", progress_.step(), counted(count, "rank"),
                                render(why));
  const bool may_come = ranks_.others_may_come();
  // A device that its node restarts comes soon after its operation's limit, even if few others can come.
  const auto limit = ranks_.may_return() > 0 ? rules_.patience : std::min(rules_.patience, rules_.replacement_limit);
  if (may_come && !short_since_) {
    short_since_ = now;
    out.emplace_back(
      note{fmt::format("{}; waiting up to {} for devices in place of the lost ones", what, duration_text(limit))});
  }
  if (!may_come || now - *short_since_ >= limit)
    return end_with_model(out, make_error(errc::too_few_devices, what));
  progress_.enter(phase::recovering);
  out.emplace_back(resume_later{progress_.attempt(), look_again});
}

step_change::decisions step_change::rank_failed(const caf::error& why) {
  ensure(progress_.is_running() && !progress_.ending(), "ranks fail in a step that is under way");
  ensure(static_cast<bool>(why), "a rank fails for a reason");
  decisions out;
  const auto text = with_context(fmt::format("step {}", progress_.step()), why);
  if (code_of(text) != errc::out_of_memory || ranks_.world_size() == ranks_.wanted()) {
    end_with_model(out, text);
    return out;
  }
  ranks_.mark_too_small();
  if (!ranks_.others_may_come() && ranks_.possible_world().ranks == 0)
    end_with_model(out, text);
  else
    give_up(out, why);
  check();
  return out;
}

step_change::decisions step_change::give_up(const caf::error& why) {
  decisions out;
  give_up(out, why);
  check();
  return out;
}

void step_change::give_up(decisions& out, const caf::error& why) {
  progress_.enter(phase::recovering);
  if (why) {
    latest_problem_ = why;
    out.emplace_back(note{fmt::format("step {} is given up: {}", progress_.step(), render(why))});
  }
  abandon_step asked{progress_.start_attempt(), {}};
  for (auto& each : ranks_.members())
    if (each.ready)
      asked.devices.push_back(each.device);
  teardown_.start(asked.devices);
  out.emplace_back(std::move(asked));
  // Communicators stay open while ranks hand over: a node that is drained exits when its last communicator has ended.
  const bool will_hand_over = !why && ranks_.some_leave();
  if (teardown_.communicators_are_open() && !will_hand_over) {
    teardown_.close_communicators();
    out.emplace_back(close_communicators{progress_.attempt()});
  }
  resume_if_torn_down(out);
}

step_change::decisions step_change::gave_up(device_id device, uint64_t attempt) {
  decisions out;
  if (progress_.is_latest(attempt))
    gave_up(out, device);
  check();
  return out;
}

void step_change::gave_up(decisions& out, device_id device) {
  if (teardown_.gave_up(device))
    resume_if_torn_down(out);
}

step_change::decisions step_change::coordinator_answered(uint64_t attempt, device_id device, const caf::error& lost,
                                                         time_point now) {
  if (!progress_.is_latest(attempt) || progress_.now() != phase::recovering)
    return {};
  auto out = lost ? device_lost(device, lost, now) : decisions{};
  if (progress_.is_latest(attempt)) { // else it was counted for an attempt that `device_lost` has replaced
    teardown_.coordinator_answered();
    resume_if_torn_down(out);
  }
  check();
  return out;
}

step_change::decisions step_change::communicators_closed(uint64_t attempt, const caf::error& problem) {
  decisions out;
  if (!progress_.is_latest(attempt) || progress_.now() != phase::recovering)
    return out;
  teardown_.communicators_closed();
  if (problem && !progress_.ending()) // streams could overwrite what the next attempt computes
    end_with_model(out, problem);
  resume_if_torn_down(out);
  check();
  return out;
}

void step_change::resume_if_torn_down(decisions& out) {
  if (teardown_.is_complete() && progress_.now() == phase::recovering)
    out.emplace_back(resume_later{progress_.attempt(), settle_time});
}

step_change::decisions step_change::resume(uint64_t attempt, const model_location& model, time_point now) {
  decisions out;
  if (!progress_.is_latest(attempt) || progress_.now() != phase::recovering || teardown_.is_handing_over())
    return out;
  ensure(teardown_.is_complete(), "an attempt is resumed when the last one was given up");
  auto missing = model.missing;
  if (progress_.ending())
    out.emplace_back(take_last_snapshot{});
  else if (let_leave(out, model, missing))
    ; // `handed_over` resumes it
  else if (teardown_.communicators_are_open()) {
    teardown_.close_communicators();
    out.emplace_back(close_communicators{progress_.attempt()});
  } else {
    joins_ = false;
    out.emplace_back(search_devices{});
    find_model(out, missing, model.snapshot_step);
    if (progress_.all_steps_are_done())
      finish(out);
    else {
      if (std::exchange(repeated_at_, progress_.attempt()) != progress_.attempt())
        out.emplace_back(repeat_snapshot{progress_.step()});
      start(out, now);
    }
  }
  check();
  return out;
}

void step_change::find_model(decisions& out, const caf::error& missing, uint64_t snapshot_step) {
  const auto before = progress_.step();
  if (before == 0 || !missing)
    return;
  progress_.go_back(snapshot_step);
  ranks_.forget_all_parts();
  out.emplace_back(note{fmt::format("{}: back to {}; to be done again: {}", render(missing),
                                    snapshot_step == 0 ? "the first weights" : fmt::format("step {}", snapshot_step),
                                    counted(before - snapshot_step, "step"))});
}

step_change::decisions step_change::committed(std::vector<std::vector<kept_part>> made, time_point now) {
  ensure(ranks_.world_size() > 0, "a step that counts was under way");
  decisions out;
  progress_.step_committed();
  ranks_.commit(std::move(made));
  if (progress_.all_steps_are_done()) {
    finish(out);
    return out;
  }
  out.emplace_back(take_snapshot{progress_.step()});
  if (joins_ || ranks_.some_leave())
    give_up(out, caf::none);
  else
    start(out, now);
  check();
  return out;
}

// -- ranks that leave --

step_change::decisions step_change::asked_to_leave(device_id device, std::string_view why) {
  decisions out;
  const auto* found = ranks_.find(device);
  if (found == nullptr || progress_.is_over() || progress_.ending() || found->leaves)
    return out;
  ranks_.set_leaves(device, true);
  out.emplace_back(
    note{fmt::format("{} leaves after step {}: {}", ringmaster::text_of(device), progress_.step(), why)});
  return out;
}

void step_change::keep_leaving(const std::set<device_id>& devices) {
  if (progress_.now() != phase::gathering && !progress_.is_running()) // they leave already
    return;
  for (auto& each : std::vector{ranks_.members()})
    if (each.leaves && !devices.contains(each.device))
      ranks_.set_leaves(each.device, false);
}

bool step_change::let_leave(decisions& out, const model_location& model, caf::error& missing) {
  if (!ranks_.some_leave())
    return false;
  const bool others_have_it = progress_.step() == 0 || !model.missing_without_leavers;
  if (!others_have_it && !model.missing) {
    teardown_.start_handing_over();
    out.emplace_back(hand_over{progress_.attempt()});
    return true;
  }
  release(out, others_have_it ? caf::error{} : make_error(errc::device_lost, "what others had is lost"));
  missing = model.missing_without_leavers;
  return false;
}

step_change::decisions step_change::handed_over(uint64_t attempt, const caf::error& problem) {
  decisions out;
  if (!progress_.is_latest(attempt) || progress_.now() != phase::recovering)
    return out;
  const bool was_asked = teardown_.end_handing_over();
  ensure(was_asked, "what was handed over was asked for");
  release(out, problem);
  check();
  return out;
}

void step_change::release(decisions& out, const caf::error& problem) {
  ensure(teardown_.awaited_ranks().empty(), "ranks leave after they have given up their attempt");
  // A device that is drained gets no other rank meanwhile, and may come back.
  for (auto device : ranks_.remove_leaving(!rules_.starts_ranks)) {
    out.emplace_back(
      note{problem ? fmt::format("{} has left, and its parts of the model could not be taken over: {}",
                                 ringmaster::text_of(device), render(problem))
                   : fmt::format("{} has left; its parts of the model are taken over", ringmaster::text_of(device))});
    out.emplace_back(release_rank{device});
  }
}

// -- the end --

void step_change::finish(decisions& out) {
  progress_.enter(phase::finishing);
  if (!progress_.try_again(rules_.attempts_max))
    return end(out, make_error(errc::gave_up, fmt::format("the parts of the model could not be collected: {}",
                                                          text_of_problem(latest_problem_))));
  out.emplace_back(take_final_snapshot{progress_.start_attempt()});
}

step_change::decisions step_change::stop(const caf::error& why) {
  decisions out;
  end_with_model(out, progress_.ending() ? progress_.ending() : why);
  return out;
}

void step_change::end_with_model(decisions& out, const caf::error& why) {
  ensure(static_cast<bool>(why), "a run ends before its last step for a reason");
  if (progress_.is_over())
    return;
  if (progress_.now() == phase::gathering) // nothing was trained
    return end(out, why);
  const bool repeated = static_cast<bool>(progress_.ending());
  progress_.set_ending(why);
  const bool at_once = progress_.now() != phase::recovering
                       && !progress_.all_steps_are_done(); // else it follows `resume`, or is under way
  out.emplace_back(end_with_snapshot{why, progress_.step(), repeated, at_once});
}

step_change::decisions step_change::program_failed(const caf::error& why) {
  ensure(static_cast<bool>(why), "a program fails for a reason");
  return end(with_context(fmt::format("step {}", progress_.step()), why));
}

step_change::decisions step_change::end(const caf::error& problem) {
  decisions out;
  end(out, problem);
  return out;
}

void step_change::end(decisions& out, const caf::error& problem) {
  if (progress_.is_over())
    return;
  progress_.enter(phase::over);
  progress_.start_attempt(); // what is under way no longer counts
  out.emplace_back(end_run{problem});
}

} // namespace ringmaster::training
