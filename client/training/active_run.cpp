#include "client/training/active_run.hpp"

#include "actors/calls/await_down.hpp"
#include "actors/scheduling/awake_clock.hpp"
#include "actors/training/trainer.hpp"
#include "client/client.hpp"
#include "client/training/model_checkpoint.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"
#include "training/computed/free_memory.hpp"
#include "training/computed/sampled_batches.hpp"

#include <caf/scoped_actor.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace ringmaster::training {

namespace {

constexpr caf::timespan find_limit = std::chrono::seconds{60};
/// For the trainer to collect this rank's parts of the model, if this process or all of them are asked to stop.
constexpr std::chrono::seconds leave_limit{6};
/// If all processes are asked to stop, rank 0's has ended the run by then.
constexpr std::chrono::milliseconds leave_alone{500};

std::string notice_of(const process_group& group) {
  return fmt::format("training over communicator {}", group.ranks().front().id());
}

} // namespace

trainer_settings trainer_settings_of(const run_settings& x) {
  trainer_settings result;
  result.deterministic = x.deterministic;
  result.mirror = x.mirror;
  result.memory_bytes = x.memory_bytes;
  result.patience = x.patience;
  result.replacement_limit = x.replacement_limit;
  result.operation_limit = x.operation_limit;
  return result;
}

caf::error active_run::prepare(bool leads, bool with_others) {
  RETURN_ERROR(check(settings_));
  auto& job = settings_.job;
  job.layers = *layers_for(*job.strategy, std::move(job.layers));
  auto made = order_of(settings_);
  outcome_.steps_an_epoch = made->steps_an_epoch();
  outcome_.steps = outcome_.steps_an_epoch * settings_.epochs;
  job.labels_each = settings_.data.training->labels_each();
  job.data = std::make_shared<sampled_batches>(settings_.data.training, std::move(*made));
  job_ = std::make_shared<training_job>(std::move(job));
  if (with_others)
    job_settings_ = requested_settings(*job_, *settings_.data.training, settings_.deterministic, settings_.mirror,
                                       settings_.data.held_out.get());
  const bool keeps_model = leads && !settings_.checkpoints.empty(); // other ranks get the model from the trainer
  return keeps_model ? begin_in_folder() : caf::none;
}

caf::error active_run::begin_in_folder() {
  RETURN_ERROR(directory_.claim());
  if (settings_.resume) {
    training_ = directory_.training().value_or(number_);
    return resume();
  }
  TRY(steps, directory_.steps());
  if (steps->empty()) {
    if (auto problem = directory_.begin_training(number_))
      watcher_.note(fmt::format("the journal will count a run that resumes this one as another training: {}",
                                render(problem)));
    return caf::none;
  }
  return invalid(fmt::format("{} has checkpoints of an earlier run, up to step {}: --resume continues from there, and "
                             "a new run needs another folder",
                             settings_.checkpoints.string(), steps->back()));
}

caf::error active_run::resume() {
  TRY(found, load_checkpoint(directory_, *job_, *settings_.data.training));
  if (!*found) {
    watcher_.note(fmt::format("{} has no checkpoint yet: the run starts with the first weights",
                              settings_.checkpoints.string()));
    return caf::none;
  }
  for (auto& each : (*found)->notes)
    watcher_.note(each);
  from_ = std::move((*found)->image);
  outcome_.began_at = outcome_.steps_done = from_.step;
  const auto file = directory_.file_of(from_.step).string();
  if (from_.step >= outcome_.steps)
    return invalid(fmt::format("{} has done all {} already: more epochs are needed to continue", file,
                               counted(outcome_.steps, "step")));
  if (settings_.kill_at && *settings_.kill_at <= from_.step)
    return invalid(fmt::format("no device can be killed in step {}: the run resumes at step {}, from {}",
                               *settings_.kill_at, from_.step, file));
  watcher_.note(fmt::format("resumes at step {} of {}, from {}", from_.step, outcome_.steps, file));
  return caf::none;
}

caf::error active_run::find_devices(trainer_settings& to, process_group* group) {
  if (group != nullptr) { // processes whose device is lost by now report that, and come with another one
    to.devices = group->devices();
    return caf::none;
  }
  client user{system_, coordinator_};
  for (const auto give_up = awake_clock::now() + settings_.devices_limit;;) {
    TRY(found, user.devices(settings_.ranks, settings_.devices_limit));
    to.devices.clear();
    for (auto& each : found->devices())
      if (each.comm_ids().empty() && to.devices.size() < settings_.ranks)
        to.devices.push_back(device_id{each.metadata().deviceid().value()});
    if (to.devices.size() == settings_.ranks)
      return caf::none;
    if (watcher_.stops())
      return make_error(errc::aborted, "the run was asked to stop");
    if (awake_clock::now() >= give_up)
      return make_error(errc::too_few_devices,
                        fmt::format("{} of the {} that {} need are free, after {}", to.devices.size(),
                                    counted(settings_.ranks, "device"), counted(settings_.ranks, "rank"),
                                    duration_text(settings_.devices_limit)));
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
  }
}

rank_settings active_run::rank_with(trainer_actor with) const {
  rank_settings its;
  its.job = job_;
  its.coordinator = coordinator_;
  its.trainer = std::move(with);
  its.memory_bytes = settings_.memory_bytes;
  its.shared_settings = job_settings_;
  return its;
}

caf::expected<trainer_actor> active_run::find_trainer(const process_group& group) {
  client user{system_, coordinator_};
  const auto by = notice_of(group);
  for (auto give_up = awake_clock::now() + find_limit; awake_clock::now() < give_up;) {
    if (watcher_.stops())
      return make_error(errc::aborted, "the run was asked to stop");
    auto found = user.ask_within<caf::strong_actor_ptr>(std::chrono::seconds{10}, by);
    if (!found && code_of(found.error()) == errc::device_lost) // the coordinator has exited
      return std::move(found.error());
    if (found && *found)
      return caf::actor_cast<trainer_actor>(*found);
    if (!group.has_process_of(0))
      return make_error(errc::device_lost,
                        "rank 0 has exited before it started to train: see its output for the reason");
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
  }
  return make_error(errc::timed_out,
                    fmt::format("rank 0 has not started to train within {}", duration_text(find_limit)));
}

caf::error active_run::play(process_group& group) {
  ensure(job_ != nullptr, "a run is prepared before its rank runs");
  TRY(with, find_trainer(group));
  caf::scoped_actor self{system_};
  self->monitor(*with);
  own_rank mine{system_, group, rank_with(*with)};
  std::optional<caf::error> trainer_ended;
  auto await_trainer = [&](caf::timespan limit) {
    if (const auto down = await_down(*self, limit))
      trainer_ended = down->reason;
  };
  std::optional<awake_clock::time_point> asked_at;
  bool asked = false, leaves = false; // alone: the run continues
  while (!mine.over()) {
    mine.poll(std::chrono::milliseconds{100});
    await_trainer(caf::timespan{0});
    if (!asked_at && watcher_.stops())
      asked_at = awake_clock::now();
    if (asked_at && awake_clock::now() >= *asked_at + leave_alone && !std::exchange(asked, true))
      mine.ask_to_leave();
    leaves = asked_at && awake_clock::now() >= *asked_at + leave_limit;
    if (trainer_ended || leaves)
      mine.leave();
  }
  if (!trainer_ended && !mine.problem() && !leaves)
    await_trainer(asked ? std::chrono::seconds{1}
                        : leave_limit); // the trainer lets all ranks go first, then exits with its reason
  if (trainer_ended && code_of(*trainer_ended) != errc::ok)
    return with_context("the run has ended", *trainer_ended);
  if (trainer_ended && *trainer_ended && *trainer_ended != caf::exit_reason::user_shutdown)
    return make_error(errc::device_lost,
                      fmt::format("rank 0, which has the trainer, has exited or lost this process: {}. If the run has "
                                  "ended and wrote checkpoints, another run continues it (--checkpoint DIR --resume)",
                                  render(*trainer_ended)));
  return trainer_ended ? caf::error{} : mine.problem(); // the run has finished without this rank
}

void active_run::guarded(const std::function<void()>& what) {
  try {
    what();
  } catch (const std::exception& problem) {
    problem_ = make_error(errc::aborted, problem.what());
  }
}

void active_run::take_events() {
  for (auto& each : events_.take_all()) {
    guarded(each);
    stop_if_requested();
  }
}

void active_run::stop_if_requested() {
  if (stopped_ || ended_)
    return;
  bool stops = false;
  guarded([&] { stops = watcher_.stops(); });
  if (!stops && !problem_)
    return;
  ensure(static_cast<bool>(trainer_), "the trainer that is asked to stop was started");
  stopped_ = true;
  caf::anon_send(trainer_, atom::expire_v);
}

void active_run::follow(own_rank* mine) {
  caf::scoped_actor self{system_};
  self->monitor(trainer_);
  bool down = false;
  while (!ended_) {
    take_events();
    if (down && !ended_) // all of its events are handled
      ended_ = make_error(errc::aborted, "the trainer has exited without a result");
    if (mine != nullptr && !mine->over()) {
      mine->poll(std::chrono::milliseconds{0});
      if (mine->over() && mine->problem())
        guarded([&] {
          watcher_.note(fmt::format("this process has no rank any longer: {}", render(mine->problem())));
        });
    }
    stop_if_requested();
    down = down || await_down(*self, caf::timespan{0});
  }
}

caf::expected<run_outcome> active_run::run(process_group* group) {
  ensure(job_ != nullptr && !trainer_, "a run is prepared, then run once");
  auto its = trainer_settings_of(settings_);
  its.job = job_;
  its.coordinator = coordinator_;
  its.steps = outcome_.steps;
  its.image_every = outcome_.steps_an_epoch;
  its.from = std::move(from_);
  its.record = [this](uint64_t step) {
    auto x = record_of(*job_, settings_.data.training->count(), outcome_.steps_an_epoch, step);
    x.set_run(number_);
    x.set_training(training_);
    return x;
  };
  using kind = event_queue::kind;
  its.watcher.has_room = [this, at = settings_.kill_at,
                          give_up = std::optional<awake_clock::time_point>{}](uint64_t step, bool with_model) mutable {
    if (step == at && !killed_) { // the device is killed before the step is committed
      give_up = give_up.value_or(awake_clock::now() + client::usual_limit);
      if (awake_clock::now() < *give_up)
        return false;
    }
    return events_.has_room(with_model);
  };
  its.watcher.step_done = [this, at = settings_.kill_at](const step_report& x) {
    events_.put([this, x] { step_done(x); }, x.step + 1 == at ? kind::word : kind::step);
  };
  if (settings_.profiles) {
    // Preferably after the first epoch, when memory has its pages and generated samples are in the cache.
    const auto second_epoch = std::min(its.from.step + outcome_.steps_an_epoch, its.steps - 1);
    const auto which = spread_steps(second_epoch, its.steps, outcome_.steps_an_epoch);
    its.profile_steps = {which.first, its.steps};
    its.profile_every = which.every;
  }
  its.watcher.profiled = [this](const std::vector<event>& x, double seconds) {
    events_.put([this, x, seconds] { profiled(x, seconds); }, kind::step);
  };
  its.watcher.note = [this](const std::string& x) { events_.put([this, x] { watcher_.note(x); }, kind::word); };
  its.watcher.image = [this](const model_snapshot& x) { events_.put([this, x] { image_taken(x); }, kind::model); };
  its.watcher.ended = [this](const caf::expected<model_snapshot>& x) {
    events_.put([this, x] { ended_ = x; }, kind::word);
  };
  its.free_memory = [] { return free_memory(); };
  its.starts_ranks = group == nullptr;
  its.shared_settings = job_settings_;
  RETURN_ERROR(find_devices(its, group));
  devices_ = its.devices;
  trainer_ = system_.spawn(trainer, std::move(its));
  std::optional<own_rank> mine;
  if (group != nullptr) {
    caf::anon_send(coordinator_, notice_of(*group), caf::actor_cast<caf::strong_actor_ptr>(trainer_));
    mine.emplace(system_, *group, rank_with(trainer_));
  }
  follow(mine ? &*mine : nullptr);
  ensure(ended_.has_value(), "a run that was followed has ended");
  sum_up();
  if (problem_ || !*ended_) {
    auto why = problem_ ? std::move(problem_) : std::move(ended_->error());
    watcher_.broken_off(outcome_, why);
    return why;
  }
  outcome_.image = std::move(**ended_);
  return std::move(outcome_);
}

void active_run::sum_up() {
  outcome_.job = job_;
  ensure(profiled_.size() == outcome_.profiles.steps.size(), "each profile has its step");
  const auto& seconds = seconds_.empty() ? first_seconds_ : seconds_;
  outcome_.step_seconds = median_of(seconds);
  for (size_t i = 0; i < profiled_.size(); ++i)
    outcome_.profiles.steps[i].around = median_around(seconds, profiled_[i]);
}

} // namespace ringmaster::training
