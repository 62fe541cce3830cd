#pragma once

#include "actors/training/trainer.hpp"
#include "tests/support/simulated_cluster.hpp"
#include "tests/support/training/training_jobs.hpp"
#include "training/computed/computed_world.hpp"

#include <doctest/doctest.h>

namespace ringmaster::test {

using namespace training;

/// A run on devices of a simulated cluster.
struct simulated_training {
  simulated_training(simulated_cluster& on, training_job what, uint32_t ranks, uint64_t steps)
    : cluster(on), job(std::make_shared<training_job>(std::move(what))) {
    settings.job = job;
    settings.coordinator = cluster.host;
    settings.steps = steps;
    settings.deterministic = true;
    settings.detached = false;
    auto info = cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{});
    for (auto& each : info.devices()) { // they have joined in any order
      const auto id = each.metadata().deviceid();
      if (settings.devices.size() < ranks)
        settings.devices.push_back(device_id{id.value()});
      devices.push_back(caf::actor_cast<caf::actor>(cluster.ask_coordinator<device_handle>(id).device));
    }
    settings.watcher.step_done = [this](const step_report& x) { reports.push_back(x); };
    settings.watcher.note = [this](const std::string& x) { notes.push_back(x); };
    settings.watcher.image = [this](const model_snapshot& x) { images.push_back(x); };
    settings.watcher.ended = [this](const caf::expected<model_snapshot>& x) { outcome = x; };
  }

  ~simulated_training() {
    if (handle) // a test that has failed
      cluster.self->send_exit(handle, caf::exit_reason::kill);
    handle = nullptr;
    devices.clear();
    for (int i = 0; i < 10000 && cluster.step(); ++i)
      ;
  }

  void start() { handle = cluster.sys.spawn(trainer, settings); }
  void run() {
    start();
    finish();
  }
  void finish() {
    cluster.run_until([&] { return outcome.has_value(); });
    handle = nullptr;
    cluster.run_until([&] { return cluster.scheduler.jobs.empty(); });
  }
  /// Until this number of steps is done.
  void run_steps(size_t count) {
    cluster.run_until([&] { return reports.size() >= count || outcome; });
  }
  /// This number of messages or timeouts, or until the end.
  void run_messages(uint64_t count) {
    cluster.run_until([&] { return count-- == 0 || outcome; });
  }
  /// By rank; spare devices follow.
  void kill(size_t device) { cluster.self->send_exit(devices[device], caf::exit_reason::kill); }
  uint64_t notes_with(std::string_view what) const {
    return static_cast<uint64_t>(std::ranges::count_if(notes,
                                                       [&](auto& x) { return x.find(what) != std::string::npos; }));
  }
  std::string problem() const { return *outcome ? "" : render(outcome->error()); }
  /// A layer's weights, as one whole.
  std::vector<double> weights(uint32_t layer) const { return weights_in(**outcome, layer); }
  std::vector<double> weights_in(const model_snapshot& image, uint32_t layer) const {
    const auto whole = whole_part(value_kind::weight, layer);
    std::vector<double> result(job->layers[layer]->elements({}));
    for (auto& [what, data] : image.parts)
      if (what.kind == whole.kind && what.layer == layer)
        copy_common(*job, what, data.bytes(), whole, std::as_writable_bytes(std::span{result}));
    return result;
  }

  simulated_cluster& cluster;
  std::shared_ptr<training_job> job;
  trainer_settings settings;
  trainer_actor handle;
  std::vector<caf::actor> devices;
  std::vector<step_report> reports;
  std::vector<std::string> notes;
  std::vector<model_snapshot> images;
  std::optional<caf::expected<model_snapshot>> outcome;
};

inline simulation_options training_devices(uint32_t count, uint64_t seed = 1) {
  auto result = with_devices(count, seed);
  result.memory_bytes = 1 << 18;
  result.slice_bytes = 1 << 12;
  return result;
}

/// With a journal, in memory.
inline simulation_options journaled_devices(uint32_t count, uint64_t seed = 1) {
  auto result = training_devices(count, seed);
  result.journaled = true;
  return result;
}

inline proto::TrainingStep numbered_record(uint64_t step) {
  proto::TrainingStep result;
  result.set_step(step);
  return result;
}

inline std::vector<double> weights_of(const computed_world& world, const training_job& job, uint32_t layer) {
  std::vector<double> result;
  for (uint32_t p = 0; p < job.layers[layer]->parameters().size(); ++p) {
    auto more = world.parameter_of(layer, p);
    result.insert(result.end(), more.begin(), more.end());
  }
  return result;
}

/// The weights after each of `steps` steps on one rank.
inline std::vector<std::vector<double>> weights_alone(uint64_t batch, int steps, uint32_t layers = 8,
                                                      std::string_view of = "ddp") {
  auto job = small_job(of, layers, batch, batch);
  computed_world world{job, 1, 4 << 20};
  for (int i = 0; i < steps; ++i)
    REQUIRE(world.run_step());
  std::vector<std::vector<double>> result;
  for (uint32_t layer = 0; layer < layers; ++layer)
    result.push_back(weights_of(world, job, layer));
  return result;
}

inline double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = a.size() == b.size() ? 0 : 1e9;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

} // namespace ringmaster::test
