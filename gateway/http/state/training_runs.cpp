#include "gateway/http/state/training_runs.hpp"

#include "runtime/journal/record_text.hpp"

#include <algorithm>
#include <span>

namespace ringmaster::gateway {

namespace {

using point = training_runs::point;

constexpr size_t fresh_max
  = 1000; ///< Between two looks; a reader of the events that misses some reads the whole curve.

/// The step's own duration, or the time since the step before if the trainer did not report it.
double seconds_of(const proto::TrainingStep& x, uint64_t time_ns, const training_runs::run& of) {
  if (x.seconds() > 0)
    return x.seconds();
  const bool follows = of.latest.time_ns != 0 && x.step() == of.latest.step + 1 && time_ns > of.latest.time_ns;
  return follows ? static_cast<double>(time_ns - of.latest.time_ns) / 1e9 : 0;
}

/// At most `most` of the points: every n-th, and the last one.
std::vector<point> thinned(std::span<const point> points, size_t most) {
  const auto stride = std::max<size_t>(1, (points.size() + most - 2) / std::max<size_t>(most - 1, 1));
  std::vector<point> result;
  for (size_t i = 0; i < points.size(); i += stride)
    result.push_back(points[i]);
  if (!points.empty() && (points.size() - 1) % stride != 0)
    result.push_back(points.back());
  return result;
}

json series_json(std::span<const point> points) {
  auto step = json::array(), time = json::array(), loss = json::array(), rate = json::array(), seconds = json::array();
  for (auto& x : points) {
    step.push_back(x.step);
    time.push_back(json_ms(x.time_ns));
    loss.push_back(x.loss); // a number that is not finite becomes null
    rate.push_back(x.samples_per_s);
    seconds.push_back(x.step_seconds);
  }
  return {{"step", step}, {"time_ms", time}, {"loss", loss}, {"samples_per_s", rate}, {"step_seconds", seconds}};
}

json run_json(const training_runs::run& x, std::span<const point> points) {
  return {{"run", std::to_string(x.id)},
          {"name", training_name(x.id)},
          {"training", std::to_string(x.training)},
          {"strategy", x.strategy},
          {"ranks", x.ranks},
          {"first_step", x.first_step},
          {"last_step", x.latest.step},
          {"epoch", x.epoch},
          {"loss", x.latest.loss},
          {"samples_per_s", x.latest.samples_per_s},
          {"step_seconds", x.latest.step_seconds},
          {"samples", x.samples},
          {"repeated", x.repeated},
          {"started_ms", json_ms(x.started_ns)},
          {"updated_ms", json_ms(x.latest.time_ns)},
          {"series", series_json(points)}};
}

void keep(training_runs::run& to, const point& x) {
  if ((x.step - to.first_step) % to.stride == 0)
    to.points.push_back(x);
  if (to.points.size() <= training_runs::points_max)
    return;
  to.stride *= 2;
  std::erase_if(to.points, [&](auto& y) { return (y.step - to.first_step) % to.stride != 0; });
}

} // namespace

void training_runs::add(const proto::Record& record) {
  if (!record.has_training_step())
    return;
  auto& x = record.training_step();
  auto& to = runs_[x.run()];
  if (to.number == 0) {
    to.id = x.run();
    to.training = x.training() == 0 ? x.run() : x.training();
    to.first_step = x.step();
    to.started_ns = record.time_ns();
  }
  // A run that continues from a checkpoint repeats steps: the later ones count.
  std::erase_if(to.points, [&](auto& y) { return y.step >= x.step(); });
  to.first_step = std::min(to.first_step, x.step());
  to.number = ++steps_;
  const auto seconds = seconds_of(x, record.time_ns(), to);
  const auto rate = seconds > 0 ? static_cast<double>(x.samples()) / seconds : 0;
  to.latest = {x.step(), record.time_ns(), x.loss(), rate, seconds};
  to.strategy = x.strategy();
  to.ranks = static_cast<uint64_t>(x.device_ids_size());
  to.epoch = x.epoch();
  to.samples += x.samples();
  to.repeated += x.attempts() > 1 ? 1 : 0;
  keep(to, to.latest);
  if (to.fresh.size() < fresh_max)
    to.fresh.push_back(to.latest);
  if (runs_.size() > runs_max)
    runs_.erase(std::ranges::min_element(runs_, {}, [](auto& entry) { return entry.second.number; }));
}

std::vector<const training_runs::run*> training_runs::runs() const {
  std::vector<const run*> result;
  for (auto& [id, x] : runs_)
    result.push_back(&x);
  std::ranges::sort(result, std::greater{}, [](auto* x) { return x->number; });
  return result;
}

json training_runs::write(size_t points) const {
  auto list = json::array();
  for (const auto* x : runs()) {
    auto all = x->points;
    if (all.empty() || all.back().step != x->latest.step)
      all.push_back(x->latest);
    list.push_back(run_json(*x, thinned(all, points)));
  }
  return {{"runs", std::move(list)}};
}

json training_runs::take_fresh() {
  auto list = json::array();
  for (auto& [id, x] : runs_)
    if (!x.fresh.empty()) {
      list.push_back(run_json(x, x.fresh));
      x.fresh.clear();
    }
  return list.empty() ? json(nullptr) : json{{"runs", std::move(list)}};
}

} // namespace ringmaster::gateway
