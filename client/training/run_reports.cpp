// How a run handles the reports of its trainer: steps, epochs, checkpoints.
#include "client/training/active_run.hpp"

#include "client/client.hpp"
#include "client/training/model_checkpoint.hpp"
#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"
#include "training/computed/model_parts.hpp"
#include "training/computed/sampled_batches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ringmaster::training {

namespace {

using clock = std::chrono::steady_clock;

/// Held-out samples on which a model is evaluated that is saved because the run ends.
constexpr uint32_t early_tries_max = 64;

} // namespace

proto::TrainingStep record_of(const training_job& job, uint32_t data_samples, uint64_t steps_an_epoch, uint64_t step) {
  proto::TrainingStep result;
  const auto batch = job.shape.global_batch;
  ensure(steps_an_epoch > 0, "an epoch has steps");
  result.set_step(step);
  result.set_seed(job.seed);
  result.set_epoch(step / steps_an_epoch);
  result.set_first_sample(step % steps_an_epoch * batch);
  result.set_samples(batch);
  result.set_data_samples(data_samples);
  return result;
}

void active_run::step_done(const step_report& x) {
  latest_ = x;
  outcome_.steps_done = x.step + 1;
  outcome_.bytes_peak = std::max(outcome_.bytes_peak, x.bytes_peak);
  outcome_.bytes_needed = std::max(outcome_.bytes_needed, x.bytes_needed);
  (x.step < outcome_.began_at + outcome_.steps_an_epoch ? first_seconds_ : seconds_).push_back(x.seconds);
  epoch_steps_[x.step] = x; // a step that is repeated replaces its first report
  watcher_.step_done(x);
  if (settings_.kill_at == x.step + 1)
    kill_one();
}

void active_run::profiled(const std::vector<event>& x, double seconds) {
  ensure(!seconds_.empty() || !first_seconds_.empty(), "a step is reported before its profile");
  auto& all = outcome_.profiles;
  if (all.steps.empty() || all.ranks != latest_.ranks) {
    all = {latest_.ranks, latest_.step, latest_.step, {}};
    profiled_.clear();
  }
  all.last = latest_.step;
  all.steps.push_back({x, seconds});
  profiled_.push_back((seconds_.empty() ? first_seconds_ : seconds_).size() - 1); // step_done was called before
}

void active_run::kill_one() {
  settings_.kill_at.reset();
  client user{system_, coordinator_};
  proto::FaultRequest death;
  death.set_kind(proto::FaultRequest::KILL);
  ensure(!devices_.empty(), "a run has devices");
  const auto victim = devices_.back();
  if (auto problem = user.inject(victim, death))
    watcher_.note(fmt::format("device {:#x} could not be killed: {}", victim.value, render(problem)));
  killed_ = true;
  caf::anon_send(trainer_, atom::resume_v); // the step may have finished meanwhile
}

void active_run::image_taken(const model_snapshot& x) {
  if (x.step % outcome_.steps_an_epoch == 0)
    return report_epoch(x);
  // The run ends.
  outcome_.steps_done = x.step; // it may have gone back to this step
  if (!settings_.checkpoints.empty() && tried(x, early_tries_max))
    save(x, "it was the last one");
}

std::optional<loss_sums> active_run::tried(const model_snapshot& x, uint32_t samples_max) {
  auto whole = whole_parts(*job_, x);
  std::vector<std::span<const std::byte>> views;
  for (uint32_t l = 0; l < job_->layers.size(); ++l)
    views.push_back(whole[whole_part(value_kind::weight, l)]); // empty if it has no parameters
  auto continues = [&](uint32_t tried) { return tried < early_tries_max || !watcher_.stops(); };
  auto result = evaluate(*job_, views, *settings_.data.held_out, samples_max, continues);
  if (result && std::isfinite(result->loss))
    return std::move(*result);
  if (problem_) // only the first such model is reported, not the one that the run ends with because of it
    return std::nullopt;
  if (!result)
    problem_ = with_context("held-out data", result.error());
  else
    problem_ = make_error(errc::aborted,
                          fmt::format("the outputs of the model after {} are not finite, and it is not saved: a lower "
                                      "learning rate would help",
                                      counted(x.step, "step")));
  return std::nullopt;
}

void active_run::report_epoch(const model_snapshot& x) {
  epoch_report report;
  ensure(x.step > 0 && x.step % outcome_.steps_an_epoch == 0, "an epoch is reported at its end");
  report.epoch = x.step / outcome_.steps_an_epoch;
  report.steps = x.step;
  const auto first = (report.epoch - 1) * outcome_.steps_an_epoch;
  uint64_t steps = 0;
  std::chrono::duration<double> took{0};
  for (auto i = epoch_steps_.lower_bound(first); i != epoch_steps_.end() && i->first < x.step; ++i, ++steps) {
    report.loss += i->second.loss;
    report.accuracy += i->second.accuracy;
    report.ranks = i->second.ranks;
    report.ranks_least = steps == 0 ? report.ranks : std::min(report.ranks_least, report.ranks);
    report.ranks_most = std::max(report.ranks_most, report.ranks);
    report.first_step = steps == 0 ? i->first : report.first_step;
    const auto before = i == epoch_steps_.begin() ? epoch_steps_.end() : std::prev(i);
    took += before == epoch_steps_.end() ? std::chrono::duration<double>{i->second.seconds}
                                         : std::max(i->second.ended_at - before->second.ended_at, clock::duration{0});
  }
  report.loss /= static_cast<double>(std::max<uint64_t>(steps, 1));
  report.accuracy /= static_cast<double>(std::max<uint64_t>(steps, 1));
  report.samples_a_second = static_cast<double>(steps * job_->shape.global_batch) / std::max(took.count(), 1e-9);
  auto held_out = tried(x, settings_.held_out_max);
  if (!held_out)
    return;
  report.held_out = *held_out;
  save(x, report.epoch == settings_.epochs ? "it was the last one"
                                           : fmt::format("the next one is due after epoch {}", report.epoch + 1));
  epoch_steps_.erase(epoch_steps_.begin(),
                     epoch_steps_.lower_bound(x.step - 1)); // no run goes back to a step before it
  std::erase_if(outcome_.epochs, [&](auto& y) { return y.epoch == report.epoch; });
  outcome_.epochs.push_back(report);
  watcher_.epoch_done(report);
}

void active_run::save(const model_snapshot& x, const std::string& next) {
  if (settings_.checkpoints.empty())
    return;
  auto problem = save_checkpoint(directory_, *job_, *settings_.data.training, x);
  const bool ends = stopped_ || x.step % outcome_.steps_an_epoch != 0;
  if (!problem && ends)
    watcher_.note(fmt::format("the model as of step {} is in {}", x.step, directory_.file_of(x.step).string()));
  outcome_.not_kept = problem;
  if (!problem)
    return;
  watcher_.note(fmt::format("no checkpoint of step {}, and {}: {}; {}{}", x.step,
                            ends ? "the run ends" : "training continues", render(problem),
                            code_of(problem) == errc::no_space ? "make room on the disk: " : "", next));
}

} // namespace ringmaster::training
