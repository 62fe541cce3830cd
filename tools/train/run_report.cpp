#include "tools/train/run_report.hpp"

#include "client/training/active_run.hpp"
#include "runtime/text/json_field.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/text/utf8.hpp"
#include "training/computed/sampled_batches.hpp"
#include "training/data/text_folder.hpp"
#include "training/data/yardsticks/order_2_model.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ringmaster {

using namespace training;

namespace {

uint64_t simulated_bytes_of(const predicted_step& by) {
  uint64_t result = 0;
  for (auto& each : by.simulated.ranks)
    result = std::max(result, each.peak_memory);
  return result;
}

/// Without statistics.
uint64_t parameters_of(const model_layers& layers) {
  uint64_t result = 0;
  for (auto& layer : layers)
    for (auto& each : layer->parameters())
      result += each.is_statistic ? 0 : each.elements();
  return result;
}

/// The number of held-out samples on which an epoch is evaluated.
uint32_t tried_of(const run_settings& what) {
  return std::min(what.data.held_out->count(), what.held_out_max);
}

double accuracy_of(const loss_sums& x) {
  return x.samples == 0 ? 0 : static_cast<double>(x.right) / static_cast<double>(x.samples);
}

double loss_of(const loss_sums& x) {
  return x.samples == 0 ? 0 : x.loss / static_cast<double>(x.samples);
}

double bits_of(const loss_sums& x) {
  return in_bits(loss_of(x));
}

/// With four digits after the point; if the run diverges, four significant digits.
std::string short_text(double x) {
  return std::abs(x) < 1e6 ? fmt::format("{:.4f}", x) : fmt::format("{:.4g}", x);
}

std::string bits_text(double bits) {
  return bits < 1e6 ? fmt::format("{:.3f} bits a byte", bits) : fmt::format("{:.4g} bits a byte", bits);
}

/// Of a step or an epoch; for texts in the unit of the held-out data.
std::string loss_text(double loss, bool of_text) {
  return of_text ? bits_text(in_bits(loss)) : "loss " + short_text(loss);
}

} // namespace

double in_bits(double nats) {
  return nats / std::numbers::ln2;
}

std::string beginning_text(const run_options& x, const run_settings& what) {
  std::string layers;
  for (auto& each : what.job.layers)
    layers += (layers.empty() ? "" : ", ") + each->name();
  const auto remark = order_of(what)->remark(); // it was checked before
  const auto held_out = what.data.held_out->count();
  const auto tried = tried_of(what) == held_out
                       ? std::string{}
                       : fmt::format(", {} of them evaluated, spread over all", tried_of(what));
  const auto place = what.data.found_in.empty() ? "" : fmt::format(", from {}", printable(what.data.found_in));
  const auto pieces = x.which->is_pipeline()
                        ? fmt::format(", {} a micro-batch", counted(what.job.shape.micro_batch, "sample"))
                        : std::string{};
  return fmt::format("Training {} by {} on {}{}: {} of {}{}\n{} held out{}; {} parameters in {}: {}\n{}{}\n",
                     x.model->name, x.which->name, counted(x.ranks, "rank"), pieces,
                     counted(what.data.training->count(), "sample"), what.data.training->name(), place, held_out, tried,
                     parameters_of(what.job.layers), counted(what.job.layers.size(), "layer"), layers, remark,
                     remark.empty() ? "" : "\n");
}

std::optional<double> yardstick_of(const run_settings& what) {
  auto* learned = dynamic_cast<const byte_windows*>(what.data.training.get());
  auto* tried = dynamic_cast<const byte_windows*>(what.data.held_out.get());
  if (learned == nullptr || tried == nullptr)
    return std::nullopt;
  order_2_model model;
  for (auto& file : learned->files())
    model.add(file.bytes());
  return bits_per_byte(model, *tried, tried_samples(tried->count(), what.held_out_max));
}

std::string yardstick_text(std::optional<double> bits) {
  return bits ? fmt::format("held out by file; from the two bytes before alone, {:.3f} bits a byte (Witten-Bell)\n\n",
                            *bits)
              : "";
}

std::string step_text(const std::map<uint64_t, step_report>& steps, uint64_t step, uint64_t batch, bool of_text) {
  const auto last = steps.find(step);
  auto first = last;
  uint64_t count = 0;
  for (; count + 1 < steps_of_line && first != steps.begin(); ++count)
    --first;
  std::chrono::duration<double> took{last->second.seconds};
  if (first != last)
    took = last->second.ended_at - first->second.ended_at;
  const auto samples = static_cast<double>(std::max<uint64_t>(count, 1) * batch);
  return fmt::format("{}, {} samples/s", loss_text(last->second.loss, of_text),
                     count_text(static_cast<uint64_t>(samples / std::max(took.count(), 1e-9))));
}

std::string epoch_text(const epoch_report& x, uint64_t epochs, bool of_text) {
  const auto tried = of_text ? bits_text(bits_of(x.held_out))
                             : fmt::format("loss {}, accuracy {:.4f}", short_text(loss_of(x.held_out)),
                                           accuracy_of(x.held_out));
  const auto begin = x.steps / x.epoch * (x.epoch - 1);
  const auto part = x.first_step == begin ? std::string{} : fmt::format(", from step {} on", x.first_step);
  const auto ranks = x.ranks_least == x.ranks_most ? counted(x.ranks, "rank")
                                                   : fmt::format("{} to {} ranks", x.ranks_least, x.ranks_most);
  return fmt::format("epoch {:>{}}/{}  {}  accuracy {:.4f}  held out: {}  {} samples/s on {}{}\n", x.epoch,
                     fmt::to_string(epochs).size(), epochs, loss_text(x.loss, of_text), x.accuracy, tried,
                     count_text(static_cast<uint64_t>(x.samples_a_second)), ranks, part);
}

std::string prediction_text(const run_outcome& x, const run_predictions& predicted) {
  const auto& by = predicted.measured_costs;
  const auto off = [&](double seconds) { return 100 * (seconds / x.step_seconds - 1); };
  const auto ns = [](double seconds) { return duration_text(static_cast<uint64_t>(seconds * 1e9)); };
  const auto first = x.profiles.first, last = x.profiles.last;
  const auto steps = first == last ? fmt::format("step {}", first)
                                   : fmt::format("{} steps from {} to {}", x.profiles.steps.size(), first, last);
  const auto tuned = predicted.tuned_seconds
                       ? fmt::format("with communications by section [costs], {}, {} ({:+.1f} %)\n",
                                     predicted.are_usual_costs ? "which `ringmaster tune` has not measured here"
                                                               : "as `ringmaster tune` measures them",
                                     ns(*predicted.tuned_seconds), off(*predicted.tuned_seconds))
                       : "section [costs] is of communications among ranks of one process, and these ranks are "
                         "processes: there is no prediction\n";
  return fmt::format("a step took {} at the median; the simulator, with the costs of {}, says {} ({:+.1f} %)\n{}memory "
                     "of a rank: {} at most, simulated {}; on devices, what a step started with stays until its end\n",
                     ns(x.step_seconds), steps, ns(by.seconds), off(by.seconds), tuned, bytes_text(x.bytes_peak),
                     bytes_text(simulated_bytes_of(by)));
}

std::string ending_text(const run_outcome& x, double seconds) {
  return fmt::format("\n{} in {:.1f} s; a rank held at most {}, for which a device needs {}.\n",
                     counted(x.steps - x.began_at, "step"), seconds, bytes_text(x.bytes_peak),
                     bytes_text(x.bytes_needed));
}

std::string run_json(const run_options& x, const run_settings& what, std::optional<double> yardstick,
                     const run_outcome& found, const std::map<uint64_t, step_report>& steps,
                     const std::vector<std::string>& notes, double seconds,
                     const std::optional<run_predictions>& predicted, const caf::error& why) {
  json_value json{
    {"model", x.model->name},
    {"strategy", x.which->name},
    {"ranks", x.ranks},
    {"micro_batch", training::step_shape(what.job, {x.ranks, training::setting_of(what.job.shape)}).micro_batch},
    {"data", what.data.training->name()},
    {"samples", what.data.training->count()},
    {"samples_left_out", what.data.training->count() % what.job.shape.global_batch},
    {"held_out", what.data.held_out->count()},
    {"held_out_tried", tried_of(what)},
    {"parameters", parameters_of(what.job.layers)},
    {"steps", found.steps},
    {"steps_done", found.steps_done},
    {"began_at", found.began_at},
    {"seconds", seconds},
    {"step_seconds", found.step_seconds},
    {"peak_bytes", found.bytes_peak},
    {"needed_bytes", found.bytes_needed}};
  if (yardstick)
    json["order_2_bits_per_byte"] = *yardstick;
  if (predicted) {
    auto& simulated = json["simulated"] = {{"step_seconds", predicted->measured_costs.seconds},
                                           {"peak_bytes", simulated_bytes_of(predicted->measured_costs)},
                                           {"profiled_steps", found.profiles.steps.size()}};
    if (predicted->tuned_seconds)
      simulated["tuned_step_seconds"] = *predicted->tuned_seconds;
  }
  auto& epochs = json["epochs"] = json_value::array();
  for (auto& each : found.epochs) {
    auto& epoch = epochs.emplace_back(json_value{{"epoch", each.epoch},
                                                 {"first_step", each.first_step},
                                                 {"loss", each.loss},
                                                 {"accuracy", each.accuracy},
                                                 {"held_out_loss", loss_of(each.held_out)},
                                                 {"held_out_accuracy", accuracy_of(each.held_out)},
                                                 {"samples_per_second", each.samples_a_second},
                                                 {"ranks", each.ranks},
                                                 {"ranks_least", each.ranks_least},
                                                 {"ranks_most", each.ranks_most}});
    if (yardstick)
      epoch["held_out_bits_per_byte"] = bits_of(each.held_out);
  }
  auto times = json_value::array(), losses = json_value::array(); ///< Seconds; of the attempt that was completed.
  for (auto& [step, each] : steps) {
    times.push_back(each.seconds);
    losses.push_back(each.loss);
  }
  json["step_times"] = std::move(times);
  json["step_losses"] = std::move(losses);
  json["notes"] = notes;
  if (why)
    json["error"] = render(why);
  return json_text(json) + "\n";
}

} // namespace ringmaster
