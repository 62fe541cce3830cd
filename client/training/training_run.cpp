#include "client/training/training_run.hpp"

#include "actors/training/training_rank.hpp"
#include "client/client.hpp"
#include "client/training/model_checkpoint.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/training/computed/evaluation.hpp"
#include "runtime/training/computed/sampled_batches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <mutex>

namespace ringmaster::training {

namespace {

using clock = std::chrono::steady_clock;

constexpr caf::timespan find_limit = std::chrono::seconds{60};

/// What the trainer's thread has to say, for the program's.
class event_queue {
public:
  void put(std::function<void()> x) {
    {
      std::scoped_lock lock{guard_};
      events_.push_back(std::move(x));
    }
    there_.notify_one();
  }
  /// The next one, or null after a tenth of a second.
  std::function<void()> take() {
    std::unique_lock lock{guard_};
    if (!there_.wait_for(lock, std::chrono::milliseconds{100}, [this] { return !events_.empty(); }))
      return nullptr;
    auto result = std::move(events_.front());
    events_.pop_front();
    return result;
  }

private:
  std::mutex guard_;
  std::condition_variable there_;
  std::deque<std::function<void()>> events_;
};

/// Each layer's whole weights.
std::vector<std::vector<std::byte>> weights_of(const training_job& job, const model_image& x) {
  std::vector<std::vector<std::byte>> result(job.layers.size());
  for (auto& [what, data] : x.parts) {
    if (what.kind != value_kind::weight)
      continue;
    const auto whole = whole_part(what.kind, what.layer);
    result[what.layer].resize(bytes_of(job, whole));
    copy_common(job, what, data.bytes(), whole, result[what.layer]);
  }
  return result;
}

caf::expected<sampler> order_of(const run_settings& x) {
  sampler_options order;
  order.samples = x.data.training->count();
  order.global_batch = static_cast<uint32_t>(x.job.shape.global_batch);
  order.seed = x.job.seed;
  return sampler::of(order);
}

} // namespace

caf::error check(const run_settings& x) {
  if (auto order = order_of(x); !order)
    return std::move(order.error());
  const auto& first = *x.job.layers.front();
  const auto& data = *x.data.training;
  if (x.job.shape.layers != x.job.layers.size())
    return make_error(errc::invalid_argument, fmt::format("the strategy is told of {}, and the model has {}",
                                                          counted(x.job.shape.layers, "layer"), x.job.layers.size()));
  for (size_t l = 0; l + 1 < x.job.layers.size(); ++l)
    if (x.job.layers[l]->outputs() != x.job.layers[l + 1]->inputs())
      return make_error(errc::invalid_argument,
                        fmt::format("{} makes {} outputs, and {} behind it takes {}", x.job.layers[l]->name(),
                                    x.job.layers[l]->outputs(), x.job.layers[l + 1]->name(),
                                    x.job.layers[l + 1]->inputs()));
  const auto steps = data.count() / x.job.shape.global_batch * x.epochs;
  if (x.kill_at.value_or(0) >= steps)
    return make_error(errc::invalid_argument, fmt::format("no device can be killed in step {}: there are {}, from 0 on",
                                                          *x.kill_at, counted(steps, "step")));
  if (first.inputs() != data.shape().elements())
    return make_error(errc::invalid_argument,
                      fmt::format("{} takes {} inputs, and a sample of {} has {} ({})", first.name(), first.inputs(),
                                  data.name(), data.shape().elements(), data.shape().text()));
  const auto classes = x.job.layers.back()->outputs() / data.labels_each();
  if (classes < data.label_count())
    return make_error(errc::invalid_argument,
                      fmt::format("{} has {} outputs, and {} has {} labels", x.job.layers.back()->name(), classes,
                                  data.name(), data.label_count()));
  if (auto problem = x.job.strategy->check(x.job.shape, x.ranks))
    return problem;
  const auto tensor = x.job.strategy->shape(x.job.shape, x.ranks).tensor;
  for (size_t l = 0; tensor > 1 && l < x.job.layers.size(); ++l)
    if (auto why = x.job.layers[l]->cannot_share(tensor); !why.empty())
      return make_error(errc::invalid_argument,
                        fmt::format("{} ranks cannot share layer {}, {}: {}", tensor, l, x.job.layers[l]->name(), why));
  return caf::none;
}

namespace {

class running {
public:
  running(caf::actor_system& system, coordinator_actor coordinator, run_settings settings, const run_watcher& watcher)
    : system_(system), coordinator_(std::move(coordinator)), settings_(std::move(settings)), watcher_(watcher),
      directory_(settings_.checkpoints, settings_.checkpoints_kept) {}

  caf::error prepare();
  /// `group`: of those who play the ranks, each in a process of its own; null: all are played here.
  caf::expected<run_outcome> run(process_group* group);
  /// Plays the rank of this process until there is no more to do.
  caf::error play(process_group& group);

private:
  caf::error resume();
  caf::error find_devices(trainer_settings& to, process_group* group);
  caf::actor start_rank(const process_group& group, trainer_actor with);
  caf::expected<trainer_actor> find_trainer(const std::string& by);
  proto::TrainingStep record(uint64_t step) const;
  void step_done(const step_report& x);
  void kill_one();
  /// Does what the trainer has to say, until it has ended.
  void follow(const trainer_actor& handle);
  void image_taken(const model_image& x);

  caf::actor_system& system_;
  coordinator_actor coordinator_;
  run_settings settings_;
  const run_watcher& watcher_;
  checkpoint_directory directory_;
  std::shared_ptr<const training_job> job_;
  model_image from_;
  std::vector<device_id> devices_; ///< That it began with.
  run_outcome outcome_;
  event_queue events_;
  std::optional<caf::expected<model_image>> ended_;
  step_report latest_;
  std::vector<double> seconds_;                 ///< Of all steps.
  std::map<uint64_t, step_report> epoch_steps_; ///< By their number.
  caf::error problem_;                          ///< Why the run ends before its end.
};

caf::error running::prepare() {
  if (auto problem = check(settings_))
    return problem;
  auto& job = settings_.job;
  auto made = order_of(settings_);
  outcome_.steps_an_epoch = made->steps_an_epoch();
  outcome_.steps = outcome_.steps_an_epoch * settings_.epochs;
  job.labels_each = settings_.data.training->labels_each();
  job.data = std::make_shared<sampled_batches>(settings_.data.training, std::move(*made));
  job_ = std::make_shared<training_job>(std::move(job));
  return settings_.resume ? resume() : caf::none;
}

caf::error running::resume() {
  auto found = load_checkpoint(directory_, *job_);
  if (!found)
    return std::move(found.error());
  if (!*found) {
    watcher_.note(fmt::format("{} has no checkpoint yet: it begins with the first weights",
                              settings_.checkpoints.string()));
    return caf::none;
  }
  for (auto& why : (*found)->torn)
    watcher_.note(why);
  from_ = std::move((*found)->image);
  outcome_.began_at = from_.step;
  watcher_.note(fmt::format("goes on at step {} of {}, from {}", from_.step, outcome_.steps,
                            directory_.file_of(from_.step).string()));
  if (from_.step >= outcome_.steps)
    return make_error(errc::invalid_argument,
                      fmt::format("{} has done all {} already: more epochs are needed to go on",
                                  directory_.file_of(from_.step).string(), counted(outcome_.steps, "step")));
  return caf::none;
}

caf::error running::find_devices(trainer_settings& to, process_group* group) {
  client user{system_, coordinator_};
  if (group != nullptr) {
    auto members = user.status(group->ranks().front().id());
    if (!members)
      return std::move(members.error());
    for (auto& each : members->devices())
      to.devices.push_back(device_id{each.deviceid().value()});
    return caf::none;
  }
  auto there = user.devices(settings_.ranks, settings_.devices_limit);
  if (!there)
    return std::move(there.error());
  for (auto& each : there->devices())
    if (each.comm_ids().empty() && to.devices.size() < settings_.ranks)
      to.devices.push_back(device_id{each.metadata().deviceid().value()});
  if (to.devices.size() == settings_.ranks)
    return caf::none;
  return make_error(errc::too_few_devices,
                    fmt::format("{} of the {} that {} need are free", to.devices.size(),
                                counted(settings_.ranks, "device"), counted(settings_.ranks, "rank")));
}

proto::TrainingStep running::record(uint64_t step) const {
  proto::TrainingStep result;
  const auto batch = job_->shape.global_batch;
  result.set_step(step);
  result.set_seed(job_->seed);
  result.set_epoch(step / outcome_.steps_an_epoch);
  result.set_first_sample(step % outcome_.steps_an_epoch * batch);
  result.set_samples(batch);
  result.set_data_samples(settings_.data.training->count());
  return result;
}

void running::step_done(const step_report& x) {
  latest_ = x;
  outcome_.bytes_peak = std::max(outcome_.bytes_peak, x.bytes_peak);
  seconds_.push_back(x.seconds);
  epoch_steps_[x.step] = x; // the latest, where it was done again
  watcher_.step_done(x);
  if (settings_.kill_at == x.step + 1)
    kill_one();
}

void running::kill_one() {
  settings_.kill_at.reset();
  client user{system_, coordinator_};
  proto::FaultRequest death;
  death.set_kind(proto::FaultRequest::KILL);
  const auto victim = devices_.back();
  if (auto problem = user.inject(victim, death))
    watcher_.note(fmt::format("device {:#x} was to be killed: {}", victim.value, render(problem)));
}

void running::image_taken(const model_image& x) {
  epoch_report report;
  report.epoch = x.step / outcome_.steps_an_epoch;
  report.steps = x.step;
  const auto first = (report.epoch - 1) * outcome_.steps_an_epoch;
  uint64_t steps = 0;
  std::chrono::duration<double> took{0};
  for (auto i = epoch_steps_.lower_bound(first); i != epoch_steps_.end() && i->first < x.step; ++i, ++steps) {
    report.loss += i->second.loss;
    report.accuracy += i->second.accuracy;
    report.ranks = i->second.ranks;
    const auto before = i == epoch_steps_.begin() ? epoch_steps_.end() : std::prev(i);
    took += before == epoch_steps_.end() ? std::chrono::duration<double>{i->second.seconds}
                                         : std::max(i->second.ended_at - before->second.ended_at, clock::duration{0});
  }
  report.loss /= static_cast<double>(std::max<uint64_t>(steps, 1));
  report.accuracy /= static_cast<double>(std::max<uint64_t>(steps, 1));
  report.samples_a_second = static_cast<double>(steps * job_->shape.global_batch) / std::max(took.count(), 1e-9);
  const auto weights = weights_of(*job_, x);
  const std::vector<std::span<const std::byte>> views(weights.begin(), weights.end());
  report.held_out = evaluate(*job_, views, *settings_.data.held_out, settings_.held_out_max);
  if (!std::isfinite(report.held_out.loss)) {
    problem_ = make_error(errc::invalid_argument,
                          fmt::format("the model behind step {} gives no numbers any more, and is not kept: a lower "
                                      "learning rate would help",
                                      x.step));
    return;
  }
  if (!settings_.checkpoints.empty())
    if (auto problem = save_checkpoint(directory_, *job_, x))
      watcher_.note(fmt::format("no checkpoint of step {}, training goes on: {}", x.step, render(problem)));
  std::erase_if(outcome_.epochs, [&](auto& y) { return y.epoch == report.epoch; });
  outcome_.epochs.push_back(report);
  watcher_.epoch_done(report);
}

std::string notice_of(const process_group& group) {
  return fmt::format("training over communicator {}", group.ranks().front().id());
}

caf::actor running::start_rank(const process_group& group, trainer_actor with) {
  rank_settings its;
  its.job = job_;
  its.coordinator = coordinator_;
  its.trainer = std::move(with);
  its.device = id_of(group.ranks().front().device());
  its.memory_bytes = settings_.memory_bytes;
  return caf::actor_cast<caf::actor>(system_.spawn<caf::detached>(training_rank, std::move(its)));
}

caf::expected<trainer_actor> running::find_trainer(const std::string& by) {
  caf::scoped_actor self{system_};
  for (auto give_up = clock::now() + find_limit; clock::now() < give_up && !watcher_.stops();) {
    caf::strong_actor_ptr found;
    self->request(coordinator_, std::chrono::seconds{10}, by)
      .receive([&](const caf::strong_actor_ptr& x) { found = x; }, [](const caf::error&) {});
    if (found)
      return caf::actor_cast<trainer_actor>(found);
    self->receive(caf::after(std::chrono::milliseconds{20}) >> [] {});
  }
  return make_error(errc::timed_out, fmt::format("rank 0 has not begun to train within {}",
                                                 duration_text(static_cast<uint64_t>(find_limit.count()))));
}

caf::error running::play(process_group& group) {
  auto with = find_trainer(notice_of(group));
  if (!with)
    return std::move(with.error());
  caf::scoped_actor self{system_};
  auto mine = start_rank(group, std::move(*with));
  self->monitor(mine);
  caf::error problem;
  for (bool ended = false; !ended;) {
    self->receive(
      [&](const caf::down_msg& x) {
        ended = true;
        if (x.reason && x.reason != caf::exit_reason::user_shutdown)
          problem = x.reason;
      },
      caf::after(std::chrono::milliseconds{100}) >>
        [&] {
          if (watcher_.stops())
            self->send_exit(mine, caf::exit_reason::user_shutdown);
        });
  }
  return problem;
}

void running::follow(const trainer_actor& handle) {
  caf::scoped_actor self{system_};
  self->monitor(handle);
  bool stopped = false, down = false;
  while (!ended_) {
    auto event = events_.take();
    try {
      if (event)
        event();
    } catch (const std::exception& what) {
      problem_ = make_error(errc::invalid_argument, what.what());
    }
    if (!stopped && !ended_ && (problem_ || watcher_.stops())) {
      stopped = true;
      caf::anon_send(handle, atom::expire_v);
    }
    if (down && !event && !ended_)
      ended_ = make_error(errc::aborted, "the trainer has ended without a word");
    self->receive([&](const caf::down_msg&) { down = true; }, caf::after(caf::timespan{0}) >> [] {});
  }
}

caf::expected<run_outcome> running::run(process_group* group) {
  trainer_settings its;
  its.job = job_;
  its.coordinator = coordinator_;
  its.steps = outcome_.steps;
  its.deterministic = settings_.deterministic;
  its.mirror = settings_.mirror;
  its.image_every = outcome_.steps_an_epoch;
  its.from = std::move(from_);
  its.memory_bytes = settings_.memory_bytes;
  its.record = [this, began = std::chrono::system_clock::now()](uint64_t step) {
    auto x = record(step);
    x.set_run(static_cast<uint64_t>(began.time_since_epoch().count()));
    return x;
  };
  its.watcher.step_done = [this](const step_report& x) { events_.put([this, x] { step_done(x); }); };
  if (settings_.profiles) // some steps in, when memory has its pages
    its.profile_step = std::min(its.from.step + 10, outcome_.steps - 1);
  its.watcher.profiled = [this](const std::vector<event>& x, double seconds) {
    events_.put([this, x, seconds] { outcome_.profile = {latest_.step, latest_.ranks, x, seconds}; });
  };
  its.watcher.note = [this](const std::string& x) { events_.put([this, x] { watcher_.note(x); }); };
  its.watcher.image = [this](const model_image& x) { events_.put([this, x] { image_taken(x); }); };
  its.watcher.ended = [this](const caf::expected<model_image>& x) { events_.put([this, x] { ended_ = x; }); };
  its.starts_ranks = its.takes_free_devices = group == nullptr;
  if (auto problem = find_devices(its, group))
    return problem;
  devices_ = its.devices;
  auto handle = system_.spawn(trainer, std::move(its));
  if (group != nullptr) {
    caf::anon_send(coordinator_, notice_of(*group), caf::actor_cast<caf::strong_actor_ptr>(handle));
    start_rank(*group, handle);
  }
  follow(handle);
  if (problem_)
    return std::move(problem_);
  if (!*ended_)
    return std::move(ended_->error());
  outcome_.image = std::move(**ended_);
  outcome_.job = job_;
  std::ranges::sort(seconds_);
  outcome_.step_seconds = seconds_.empty() ? 0 : seconds_[seconds_.size() / 2];
  return std::move(outcome_);
}

} // namespace

caf::expected<run_outcome> train(caf::actor_system& system, coordinator_actor coordinator, run_settings settings,
                                 const run_watcher& watcher) {
  running mine{system, std::move(coordinator), std::move(settings), watcher};
  if (auto problem = mine.prepare())
    return problem;
  return mine.run(nullptr);
}

caf::expected<std::optional<run_outcome>> train_together(caf::actor_system& system, process_group& group,
                                                         run_settings settings, const run_watcher& watcher) {
  running mine{system, group.coordinator(), std::move(settings), watcher};
  if (auto problem = mine.prepare())
    return problem;
  if (!group.plays(0)) {
    if (auto problem = mine.play(group))
      return problem;
    return std::optional<run_outcome>{};
  }
  auto found = mine.run(&group);
  if (!found)
    return std::move(found.error());
  return std::optional{std::move(*found)};
}

} // namespace ringmaster::training
