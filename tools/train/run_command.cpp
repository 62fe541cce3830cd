#include "tools/options/commands.hpp"

#include "actors/configuration/settings.hpp"
#include "actors/training/type_ids.hpp"
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/launchers/launched_process.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/text/utf8.hpp"
#include "tools/clients/cluster_connection.hpp"
#include "tools/console/ending_signals.hpp"
#include "tools/console/output_file.hpp"
#include "tools/console/progress.hpp"
#include "tools/options/configured_call.hpp"
#include "tools/train/run_report.hpp"
#include "training/measured/profiled_costs.hpp"
#include "training/pictures/event_file.hpp"
#include "training/pictures/loss_picture.hpp"
#include "training/pictures/train_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <set>
#include <thread>

namespace ringmaster {

namespace {

using namespace training;

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

class run_call final : public configured_call {
public:
  /// `called`: the name of the command.
  explicit run_call(std::string called) : called_(std::move(called)) {}

private:
  void declare_options(option_table& table) override {
    opts_.add_to(table, called_);
    join_options(table);
    table.common({"--model", "--strategy", "--ranks", "--global-batch", "--epochs", "--optimizer", "--lr",
                  "--checkpoint", "--kill", "--join"});
  }

  caf::error check() override {
    TRY(launched, launched_process_of(process_environment(), cfg_.values().coordinator.port));
    launched_ = std::move(*launched);
    RETURN_ERROR(opts_.check(launched_));
    if (!launched_ && is_given("device.count") && cfg_.values().device.count < opts_.ranks)
      return invalid(fmt::format("--device.count={}: {} need as many devices", cfg_.values().device.count,
                                 counted(opts_.ranks, "rank")));
    return caf::none;
  }

  caf::expected<int> run(const console& to) override {
    TRY(what, opts_.settings());
    what->devices_limit = cfg_.values().node.join_timeout;
    what->patience = cfg_.values().training.patience;
    if (process_environment()("RINGMASTER_NODES_RETURN") == "no") // caf-run restarts none of its nodes
      what->replacement_limit = std::chrono::seconds{3};
    what->operation_limit = cfg_.values().communicator.operation_timeout;
    RETURN_ERROR(training::check(*what));
    if (leads())
      RETURN_ERROR(try_files());
    if (leads())
      yardstick_ = yardstick_of(*what);
    if (leads() && !opts_.tensorboard.empty()) {
      auto made = event_file::create(opts_.tensorboard, seconds_since_1970());
      if (!made)
        return with_context("--tensorboard", made.error());
      events_.emplace(std::move(*made));
    }
    if (!opts_.json && leads())
      fmt::print(to.out, "{}{}", beginning_text(opts_, *what), yardstick_text(yardstick_));
    std::fflush(to.out); // also for a reader of a file
    for (auto& each : what->data.remarks) {
      notes_.push_back(each);
      fmt::print(to.err, "{}: skipped: {}\n", called_, printable(each));
    }
    block_ending_signals();
    auto all = cfg_.values();
    if (!is_given("device.count"))
      all.device.count = opts_.ranks;
    if (all.log.level == "info")
      all.log.level = "warn";
    cfg_.add_message_types<caf::id_block::ringmaster_training>();
    caf::actor_system system{cfg_};
    began_ = std::chrono::steady_clock::now();
    progress line{"train"};
    auto found = launched_ ? train_with_others(system, all, *what, watcher(to, line, *what), to.err)
                           : train_alone(system, all, *what, watcher(to, line, *what), to.err);
    if (!found && ended_by_ == SIGPIPE && code_of(found.error()) == errc::aborted)
      return make_error(errc::aborted, "the run has ended because its output was closed");
    if (!found)
      return std::move(found.error());
    return *found ? tell(to, *what, **found) : exit_ok;
  }

  /// Whether this process has the trainer, and reports.
  bool leads() const { return !launched_ || launched_->rank == 0; }

  /// Checks early that the files for the end can be written.
  caf::error try_files() const {
    RETURN_ERROR(opts_.svg.empty() ? caf::error{} : try_output_file(opts_.svg, "the picture"));
    return opts_.trace.empty() ? caf::error{} : try_output_file(opts_.trace, "the trace");
  }

  using outcome = caf::expected<std::optional<run_outcome>>;

  outcome train_alone(caf::actor_system& system, const options& all, const run_settings& what,
                      const run_watcher& watcher, std::FILE* err) {
    TRY(home, open_cluster(called_.c_str(), system, all, err));
    TRY(found, train(system, (*home)->coordinator(), what, watcher));
    return std::optional{std::move(*found)};
  }

  /// Runs one of several ranks, each of which is a process that a launcher has started.
  outcome train_with_others(caf::actor_system& system, const options& all, const run_settings& what,
                            const run_watcher& watcher, std::FILE* err) {
    TRY(group, process_group::init(system, all, opts_.ranks));
    auto found = train_together(system, **group, what, watcher);
    if (found && !leads() && ended_by_ != 0) { // the other ranks can take long
      fmt::print(err, "{}: rank {} was asked to stop, and leaves\n", called_, launched_->rank);
      (*group)->leave();
      return found;
    }
    if (found)
      RETURN_ERROR((*group)->finalize());
    return found;
  }

  double seconds_taken() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }

  caf::expected<int> tell(const console& to, const run_settings& what, const run_outcome& found) {
    TRY(predictions, predictions_of(found));
    const auto& predicted = *predictions;
    if (opts_.json)
      fmt::print(to.out, "{}", run_json(opts_, what, yardstick_, found, steps_, notes_, seconds_taken(), predicted));
    else
      fmt::print(to.out, "{}{}", ending_text(found, seconds_taken()),
                 predicted ? prediction_text(found, *predicted) : "");
    std::fflush(to.out); // before files are written
    const bool drawn = wrote(to, opts_.svg, draw(what, found));
    const bool listed = wrote_events(to);
    const bool traced = !predicted || wrote(to, opts_.trace, trace(found, predicted->measured_costs));
    if (found.not_kept) // the most important line comes last
      return make_error(code_of(found.not_kept),
                        fmt::format("the trained model is in no checkpoint: {}", render(found.not_kept)));
    return drawn && traced && listed ? exit_ok : exit_failed;
  }

  /// Whether the file was written, if it was wanted; reports either.
  bool wrote(const console& to, const std::string& file, const caf::error& problem) const {
    if (problem)
      fmt::print(to.err, "{}: {}\n", called_, render(problem));
    else if (!file.empty() && !opts_.json)
      fmt::print(to.out, "Wrote {}.\n", file);
    return !problem;
  }

  caf::expected<std::optional<run_predictions>> predictions_of(const run_outcome& found) const {
    const auto& its = found.profiles;
    if (its.steps.empty())
      return std::optional<run_predictions>{};
    TRY(measured, predict(*found.job, its.ranks, its.steps, found.step_seconds));
    run_predictions result{std::move(*measured), {}, has_usual_costs()};
    if (launched_ || !coordinator_elsewhere(cfg_.values()).empty())
      return result; // ranks are separate processes
    const auto machine = process_costs(cfg_.values(), std::max(1u, std::thread::hardware_concurrency()));
    TRY(tuned,
        predict(*found.job, its.ranks, its.steps, found.step_seconds, tuned_communications(*found.job, machine)));
    result.tuned_seconds = tuned->seconds;
    return result;
  }

  /// Whether the communications' costs are the defaults.
  bool has_usual_costs() const {
    options usual, its = cfg_.values();
    const auto all = option_entries(usual), here = option_entries(its);
    return std::ranges::equal(all, here,
                              [](auto& x, auto& y) { return x.section != "costs" || value_text(x) == value_text(y); });
  }

  /// Reports a run that has ended early; the caller prints why.
  void tell_part(const console& to, const run_settings& what, const run_outcome& found, const caf::error& why) {
    steps_.erase(steps_.lower_bound(found.steps_done), steps_.end()); // these were done, and then lost
    if (opts_.json)
      fmt::print(to.out, "{}", run_json(opts_, what, yardstick_, found, steps_, notes_, seconds_taken(), {}, why));
    wrote_events(to);
    if (auto problem = draw(what, found))
      fmt::print(to.err, "{}: {}\n", called_, render(problem));
  }

  run_watcher watcher(const console& to, progress& line, const run_settings& what) {
    run_watcher result;
    const auto batch = what.job.shape.global_batch, an_epoch = what.data.training->count() / batch;
    const auto whole = static_cast<double>(std::max<uint64_t>(an_epoch * what.epochs, 1));
    result.step_done = [this, &line, whole, batch](const step_report& x) {
      if (steps_.empty())
        line.begin_at(static_cast<double>(x.step) / whole);
      if (steps_.contains(x.step))
        done_again_.insert(x.step);
      steps_.erase(steps_.lower_bound(x.step), steps_.end()); // the run went back before them
      steps_[x.step] = x;
      add_events(x.step + 1, {{"loss/training", x.loss},
                              {"accuracy/training", x.accuracy},
                              {"speed/samples_per_second", static_cast<double>(batch) / std::max(x.seconds, 1e-9)},
                              {"speed/step_seconds", x.seconds},
                              {"run/ranks", static_cast<double>(x.ranks)},
                              {"run/attempts", static_cast<double>(x.attempts)}});
      line.at(static_cast<double>(x.step + 1) / whole, step_text(steps_, x.step, batch, opts_.model->of_text));
      while (!opts_.json && opts_.svg.empty() && steps_.size() > steps_of_line)
        steps_.erase(steps_.begin());
    };
    result.epoch_done = [this, &to, &line](const epoch_report& x) {
      const auto samples = static_cast<double>(std::max<uint64_t>(x.held_out.samples, 1));
      add_events(x.steps, {{"loss/held_out", x.held_out.loss / samples}});
      if (!opts_.json)
        line.print(to.out, epoch_text(x, opts_.epochs, opts_.model->of_text));
    };
    result.note = [this, &to, &line](const std::string& x) {
      notes_.push_back(x);
      if (!opts_.json && leads()) // the other ranks have read the same checkpoint
        line.print(to.out, "  " + printable(x) + "\n");
    };
    result.broken_off = [this, &to, &what](const run_outcome& x, const caf::error& why) {
      tell_part(to, what, x, why);
    };
    result.stops = [this] { return (ended_by_ = ended_by_ == 0 ? ending_signal() : ended_by_) != 0; };
    return result;
  }

  /// Adds an event for TensorBoard. A disk that fills up ends the file and not the training.
  void add_events(uint64_t step, std::initializer_list<event_file::scalar> values) {
    if (!events_ || not_written_)
      return;
    const auto now = seconds_since_1970();
    not_written_ = events_->add(step, now, {values.begin(), values.size()});
    if (!not_written_ && now - flushed_at_ >= 1) {
      flushed_at_ = now;
      not_written_ = events_->flush();
    }
  }

  /// Whether all events are in their file; reports if they are not.
  bool wrote_events(const console& to) {
    if (events_ && !not_written_)
      not_written_ = events_->flush();
    return !events_ || wrote(to, events_->path().string(), not_written_);
  }

  caf::error trace(const run_outcome& found, const predicted_step& by) const {
    if (opts_.trace.empty())
      return caf::none;
    const profiled_costs costs{*found.job, found.profiles.steps[by.of].events};
    const traced_step both[] = {{"measured", &by.measured, &costs}, {"simulated", &by.simulated, &costs}};
    TRY(text, trace_of(both));
    return write_output_file(opts_.trace, *text, "the trace");
  }

  caf::error draw(const run_settings& what, const run_outcome& found) const {
    if (opts_.svg.empty())
      return caf::none;
    loss_curve curve;
    curve.title = fmt::format("{} by {}, {}: {}", opts_.model->name, opts_.which->name, counted(opts_.ranks, "rank"),
                              what.data.training->name());
    curve.first = found.began_at;
    curve.steps.resize(found.steps_done - found.began_at);
    for (auto& [step, each] : steps_) {
      curve.steps[step - found.began_at] = each.loss;
      if (each.attempts > 1 || done_again_.contains(step))
        curve.given_up.push_back(step);
    }
    for (auto& each : found.epochs)
      curve.held_out.push_back({each.steps, each.held_out.loss / static_cast<double>(each.held_out.samples)});
    if (opts_.model->of_text)
      measure_in_bits(curve);
    return write_output_file(opts_.svg, picture_of(curve), "the picture");
  }

  void measure_in_bits(loss_curve& x) const {
    x.measure = "bits a byte";
    for (auto& each : x.steps)
      each = in_bits(each);
    for (auto& each : x.held_out)
      each.loss = in_bits(each.loss);
    if (yardstick_)
      x.beside = {"from the two bytes before alone", *yardstick_};
  }

  std::string called_;
  run_options opts_;
  std::optional<launched_process> launched_; ///< If it is one of several.
  std::map<uint64_t, step_report> steps_;    ///< The latest; all of them if they are written or drawn.
  std::optional<event_file> events_;         ///< For TensorBoard, if wanted.
  caf::error not_written_;                   ///< Why events are missing in it.
  double flushed_at_ = 0;                    ///< Seconds since 1970.
  std::set<uint64_t> done_again_;            ///< The first steps that were repeated after the run had gone back.
  std::vector<std::string> notes_;
  std::optional<double> yardstick_; ///< yardstick_of.
  int ended_by_ = 0;                ///< The signal.
  std::chrono::steady_clock::time_point began_;
};

} // namespace

tool_command train_for_real_command(const std::string& program) {
  const auto called = program.empty() ? "ringmaster train" : program;
  tool_command result{.name = program.empty() ? "train" : program,
                      .summary = "trains a model on simulated devices, also when some of them die",
                      .make = [called] { return std::make_unique<run_call>(called); }};
  if (!program.empty())
    result.program.clear();
  return result;
}

} // namespace ringmaster
