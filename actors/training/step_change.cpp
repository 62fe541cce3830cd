#include "actors/training/step_change.hpp"

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
  : job_(job), rules_(its), ranks_(std::move(job), wanted), step_(first_step) {}

void step_change::enter(phase next) {
  const bool is_legal = next == phase::stepping     ? phase_ != phase::finishing && !is_over()
                        : next == phase::recovering ? is_running()
                        : next == phase::finishing  ? phase_ == phase::stepping || phase_ == phase::recovering
                                                    : next == phase::over && !is_over();
  ensure(is_legal, "a phase follows one that it may follow");
  phase_ = next;
}

void step_change::check() const {
  ensure(step_ <= rules_.steps, "no more steps count than the run has");
  ensure(phase_ == phase::recovering || is_over() || gives_up_.empty(), "ranks give up in recovery only");
  ensure(phase_ == phase::recovering || is_over() || answers_awaited_ == 0, "answers are awaited in recovery only");
  ensure(phase_ == phase::recovering || is_over() || !handing_over_, "ranks hand over in recovery only");
  ensure(phase_ != phase::gathering || attempt_ == 0, "no attempt starts before all ranks are ready");
  ensure(phase_ != phase::finishing || step_ == rules_.steps, "a run finishes after its last step");
  ensure(std::ranges::all_of(gives_up_, [&](auto x) { return ranks_.find(x) != nullptr; }),
         "ranks that give up are members");
}

std::string step_change::state_text() const {
  constexpr std::string_view phases[] = {"gathering", "stepping", "recovering", "finishing", "over"};
  return fmt::format("step {} of {} is {}, attempt {} ({} of this step), {} answers and {} ranks awaited{}{}{}{}; {}",
                     step_, rules_.steps, phases[static_cast<size_t>(phase_)], attempt_, attempts_, answers_awaited_,
                     gives_up_.size(), communicators_open_ ? ", communicators open" : "", joins_ ? ", ranks join" : "",
                     handing_over_ ? ", ranks hand over" : "", ending_ ? ", to end" : "", ranks_.state_text());
}

std::optional<std::string> step_change::awaited() const {
  if (handing_over_)
    return "the parts of the model of ranks that leave have not arrived";
  if (phase_ == phase::recovering && !gives_up_.empty())
    return fmt::format("the rank of {} has not given up its step", ringmaster::text_of(*gives_up_.begin()));
  return std::nullopt;
}

// -- who takes part --

bool step_change::expects(device_id device) const {
  return !is_over() && (ranks_.find(device) != nullptr || (!rules_.starts_ranks && !ranks_.is_lost(device)));
}

step_change::decisions step_change::ready(device_id device, time_point now) {
  ensure(expects(device), "a rank becomes ready while it is expected");
  decisions out;
  ranks_.set_ready(device);
  if (phase_ == phase::gathering)
    all_gathered(out, now);
  else {
    out.emplace_back(note{fmt::format("{} has joined, from the next step on", ringmaster::text_of(device))});
    joins_ = true;
  }
  check();
  return out;
}

step_change::decisions step_change::refused(device_id device, const caf::error& problem, bool is_loss, time_point now) {
  ensure(expects(device) && ranks_.find(device) != nullptr, "a rank that refuses was expected");
  ensure(static_cast<bool>(problem), "a rank refuses for a reason");
  decisions out;
  // Another program has taken the memory since the device was found free.
  const bool taken = rules_.starts_ranks && code_of(problem) == errc::out_of_memory;
  if (phase_ == phase::gathering && !is_loss && !taken
      && ranks_.lost_count() == 0) { // any other rank would refuse, too
    end(out, problem);
    return out;
  }
  out.emplace_back(note{fmt::format("{} cannot join: {}{}", ringmaster::text_of(device),
                                    taken ? "another program has memory there: " : "", render(problem))});
  out.emplace_back(stop_rank{device, render(problem)});
  const bool takes_part = is_running() && ranks_.is_in_world(device);
  ranks_.lose(device, true);
  gave_up(out, device);
  if (takes_part) // its process runs another program, for it was ready before
    give_up(out, problem);
  else if (phase_ == phase::gathering && taken)
    out.emplace_back(search_devices{true});
  else if (phase_ == phase::gathering)
    all_gathered(out, now);
  check();
  return out;
}

step_change::decisions step_change::rank_exited(device_id device, const caf::error& why, bool may_return,
                                                time_point now) {
  decisions out;
  if (is_over() || ranks_.find(device) == nullptr)
    return out;
  const bool takes_part = is_running() && ranks_.is_in_world(device);
  const auto what = fmt::format("{} is lost: {}", ringmaster::text_of(device), render(why));
  ranks_.lose(device, may_return);
  if (takes_part) {
    give_up(out, make_error(errc::device_lost, what));
  } else {
    out.emplace_back(note{what});
    bystander_lost(out, device);
    if (phase_ == phase::gathering)
      all_gathered(out, now);
  }
  check();
  return out;
}

step_change::decisions step_change::device_lost(device_id device, const caf::error& lost, time_point now) {
  decisions out;
  if (is_over() || ranks_.find(device) == nullptr)
    return out; // its rank has exited, too
  ensure(static_cast<bool>(lost), "a device is lost for a reason");
  const bool takes_part = is_running() && ranks_.is_in_world(device);
  const auto why = fmt::format("{} is lost: {}", ringmaster::text_of(device), cause_of(lost));
  out.emplace_back(note{why});
  out.emplace_back(stop_rank{device, why});
  ranks_.lose(device, true); // its process may only be paused
  bystander_lost(out, device);
  if (takes_part)
    give_up(out, make_error(errc::device_lost, fmt::format("{} is lost", ringmaster::text_of(device))));
  else if (phase_ == phase::gathering)
    all_gathered(out, now);
  check();
  return out;
}

void step_change::bystander_lost(decisions& out, device_id device) {
  gave_up(out, device);
  if (!std::exchange(handing_over_, false))
    return;
  ++attempt_; // the answers to the old requests do not count
  out.emplace_back(resume_later{attempt_, caf::timespan{0}});
}

step_change::decisions step_change::gathering_timed_out(time_point now) {
  ensure(phase_ == phase::gathering, "ranks are gathered before the first step");
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
  ensure(gives_up_.empty() && answers_awaited_ == 0, "a step starts when every rank has given up the last attempt");
  ensure(step_ < rules_.steps, "a step that starts is one of the run's");
  ensure(!ending_, "no step starts in a run that is to end");
  enter(phase::stepping);
  if (auto text = ranks_.choose_world(step_, communicators_open_); !text.empty())
    out.emplace_back(note{std::move(text)});
  if (ranks_.world_size() == 0)
    return await_devices(out, now);
  short_since_.reset();
  if (++attempts_ > rules_.attempts_max)
    return end_with_model(out, make_error(errc::gave_up,
                                          fmt::format("step {} has failed {} times, the last time because {}", step_,
                                                      rules_.attempts_max, text_of_problem(latest_problem_))));
  ++attempt_;
  communicators_open_ = true;
  out.emplace_back(start_step{attempt_, step_});
}

void step_change::await_devices(decisions& out, time_point now) {
  ensure(!communicators_open_, "communicators have ended when there are too few ranks");
  const auto count = static_cast<uint32_t>(ranks_.members().size());
  auto why = count == 0 ? make_error(errc::device_lost, "no rank is left") : job_->strategy->check(job_->shape, count);
  if (!why || step_world_of(*job_, count).ranks > 0) // it is possible, but those that were tried have failed
    why = make_error(errc::gave_up, text_of_problem(latest_problem_));
  const auto what = fmt::format("step {} cannot be run by {}: {}", step_, counted(count, "rank"), render(why));
  const bool may_come = rules_.starts_ranks || ranks_.may_return() > 0;
  // A device that its node restarts comes soon after its operation's limit, even if few others can come.
  const auto limit = ranks_.may_return() > 0 ? rules_.patience : std::min(rules_.patience, rules_.replacement_limit);
  if (may_come && !short_since_) {
    short_since_ = now;
    out.emplace_back(
      note{fmt::format("{}; waiting up to {} for devices in place of the lost ones", what, duration_text(limit))});
  }
  if (!may_come || now - *short_since_ >= limit)
    return end_with_model(out, make_error(errc::too_few_devices, what));
  enter(phase::recovering);
  out.emplace_back(resume_later{attempt_, look_again});
}

step_change::decisions step_change::rank_failed(const caf::error& why) {
  ensure(is_running() && !ending_, "ranks fail in a step that is under way");
  ensure(static_cast<bool>(why), "a rank fails for a reason");
  decisions out;
  const auto text = with_context(fmt::format("step {}", step_), why);
  if (code_of(text) != errc::out_of_memory || ranks_.world_size() == ranks_.wanted()) {
    end_with_model(out, text);
    return out;
  }
  ranks_.mark_too_small();
  const bool others_may_come = rules_.starts_ranks || ranks_.may_return() > 0;
  if (!others_may_come && ranks_.possible_world().ranks == 0)
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
  enter(phase::recovering);
  if (why) {
    latest_problem_ = why;
    out.emplace_back(note{fmt::format("step {} is given up: {}", step_, render(why))});
  }
  ++attempt_;
  abandon_step asked{attempt_, {}};
  for (auto& each : ranks_.members())
    if (each.ready)
      asked.devices.push_back(each.device);
  gives_up_ = {asked.devices.begin(), asked.devices.end()};
  answers_awaited_ = asked.devices.size();
  out.emplace_back(std::move(asked));
  // Communicators stay open while ranks hand over: a node that is drained exits when its last communicator has ended.
  const bool will_hand_over = !why && ranks_.some_leave();
  if (communicators_open_ && !will_hand_over)
    close(out);
  resume_if_given_up(out);
}

void step_change::close(decisions& out) {
  ensure(communicators_open_, "communicators are closed once");
  ++answers_awaited_;
  out.emplace_back(close_communicators{attempt_});
}

step_change::decisions step_change::gave_up(device_id device, uint64_t attempt) {
  decisions out;
  if (attempt == attempt_)
    gave_up(out, device);
  check();
  return out;
}

void step_change::gave_up(decisions& out, device_id device) {
  if (gives_up_.erase(device) > 0)
    resume_if_given_up(out);
}

step_change::decisions step_change::coordinator_answered(uint64_t attempt, device_id device, const caf::error& lost,
                                                         time_point now) {
  if (attempt != attempt_ || phase_ != phase::recovering)
    return {};
  auto out = lost ? device_lost(device, lost, now) : decisions{};
  if (attempt == attempt_) // else it was counted for an attempt that `device_lost` has replaced
    answered(out);
  check();
  return out;
}

step_change::decisions step_change::communicators_closed(uint64_t attempt, const caf::error& problem) {
  decisions out;
  if (attempt != attempt_ || phase_ != phase::recovering)
    return out;
  ensure(communicators_open_, "communicators are closed once");
  communicators_open_ = false;
  if (problem && !ending_) // streams could overwrite what the next attempt computes
    end_with_model(out, problem);
  if (!is_over())
    answered(out);
  check();
  return out;
}

void step_change::answered(decisions& out) {
  ensure(answers_awaited_ > 0, "only awaited answers are counted");
  --answers_awaited_;
  resume_if_given_up(out);
}

void step_change::resume_if_given_up(decisions& out) {
  if (answers_awaited_ == 0 && gives_up_.empty() && phase_ == phase::recovering)
    out.emplace_back(resume_later{attempt_, settle_time});
}

step_change::decisions step_change::resume(uint64_t attempt, const model_location& model, time_point now) {
  decisions out;
  if (attempt != attempt_ || phase_ != phase::recovering || handing_over_)
    return out;
  ensure(gives_up_.empty() && answers_awaited_ == 0, "an attempt is resumed when the last one was given up");
  auto missing = model.missing;
  if (ending_)
    out.emplace_back(take_last_snapshot{});
  else if (let_leave(out, model, missing))
    ; // `handed_over` resumes it
  else if (communicators_open_)
    close(out);
  else {
    joins_ = false;
    out.emplace_back(search_devices{});
    find_model(out, missing, model.snapshot_step);
    if (step_ == rules_.steps)
      finish(out);
    else {
      if (std::exchange(repeated_at_, attempt_) != attempt_)
        out.emplace_back(repeat_snapshot{step_});
      start(out, now);
    }
  }
  check();
  return out;
}

void step_change::find_model(decisions& out, const caf::error& missing, uint64_t snapshot_step) {
  if (step_ == 0 || !missing)
    return;
  ensure(snapshot_step <= step_, "a snapshot is of a step that was committed");
  const auto before = std::exchange(step_, snapshot_step);
  attempts_ = 0;
  ranks_.forget_all_parts();
  out.emplace_back(note{fmt::format("{}: back to {}; to be done again: {}", render(missing),
                                    step_ == 0 ? "the first weights" : fmt::format("step {}", step_),
                                    counted(before - step_, "step"))});
}

step_change::decisions step_change::committed(std::vector<std::vector<kept_part>> made, time_point now) {
  ensure(phase_ == phase::stepping && ranks_.world_size() > 0, "a step that counts was under way");
  ensure(!ending_, "no step counts in a run that is to end");
  decisions out;
  ranks_.commit(std::move(made));
  ++step_;
  ensure(step_ <= rules_.steps, "no more steps count than the run has");
  attempts_ = 0;
  if (step_ == rules_.steps) {
    finish(out);
    return out;
  }
  out.emplace_back(take_snapshot{step_});
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
  if (found == nullptr || is_over() || ending_ || found->leaves)
    return out;
  ranks_.set_leaves(device, true);
  out.emplace_back(note{fmt::format("{} leaves after step {}: {}", ringmaster::text_of(device), step_, why)});
  return out;
}

void step_change::keep_leaving(const std::set<device_id>& devices) {
  if (phase_ != phase::gathering && !is_running()) // they leave already
    return;
  for (auto& each : std::vector{ranks_.members()})
    if (each.leaves && !devices.contains(each.device))
      ranks_.set_leaves(each.device, false);
}

bool step_change::let_leave(decisions& out, const model_location& model, caf::error& missing) {
  if (!ranks_.some_leave())
    return false;
  const bool others_have_it = step_ == 0 || !model.missing_without_leavers;
  if (!others_have_it && !model.missing) {
    handing_over_ = true;
    out.emplace_back(hand_over{attempt_});
    return true;
  }
  release(out, others_have_it ? caf::error{} : make_error(errc::device_lost, "what others had is lost"));
  missing = model.missing_without_leavers;
  return false;
}

step_change::decisions step_change::handed_over(uint64_t attempt, const caf::error& problem) {
  decisions out;
  if (attempt != attempt_ || phase_ != phase::recovering)
    return out;
  ensure(handing_over_, "what was handed over was asked for");
  handing_over_ = false;
  release(out, problem);
  check();
  return out;
}

void step_change::release(decisions& out, const caf::error& problem) {
  ensure(gives_up_.empty(), "ranks leave after they have given up their attempt");
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
  ensure(step_ == rules_.steps, "a run finishes after its last step");
  enter(phase::finishing);
  if (++attempts_ > rules_.attempts_max)
    return end(out, make_error(errc::gave_up, fmt::format("the parts of the model could not be collected: {}",
                                                          text_of_problem(latest_problem_))));
  out.emplace_back(take_final_snapshot{++attempt_});
}

step_change::decisions step_change::stop(const caf::error& why) {
  decisions out;
  end_with_model(out, ending_ ? ending_ : why);
  return out;
}

void step_change::end_with_model(decisions& out, const caf::error& why) {
  ensure(static_cast<bool>(why), "a run ends before its last step for a reason");
  if (is_over())
    return;
  if (phase_ == phase::gathering) // nothing was trained
    return end(out, why);
  const bool repeated = static_cast<bool>(ending_);
  ending_ = why;
  const bool at_once = phase_ != phase::recovering
                       && step_ != rules_.steps; // else it follows `resume`, or is under way
  out.emplace_back(end_with_snapshot{why, step_, repeated, at_once});
}

step_change::decisions step_change::program_failed(const caf::error& why) {
  ensure(static_cast<bool>(why), "a program fails for a reason");
  return end(with_context(fmt::format("step {}", step_), why));
}

step_change::decisions step_change::end(const caf::error& problem) {
  decisions out;
  end(out, problem);
  return out;
}

void step_change::end(decisions& out, const caf::error& problem) {
  if (is_over())
    return;
  enter(phase::over);
  ++attempt_;
  out.emplace_back(end_run{problem});
}

} // namespace ringmaster::training
