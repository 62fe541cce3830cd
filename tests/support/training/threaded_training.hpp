#pragma once

#include "actors/configuration/configuration.hpp"
#include "client/client.hpp"
#include "client/cluster.hpp"
#include "client/training/model_checkpoint.hpp"
#include "client/training/training_run.hpp"
#include "messages/errc.hpp"
#include "training/data/synthetic_digits.hpp"
#include "training/layers/plain_layers.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>

namespace ringmaster::test {

using namespace training;

/// A cluster of this process on real threads.
class threaded_cluster {
public:
  explicit threaded_cluster(uint32_t devices) : system_(config_) {
    options opts;
    opts.device.count = devices;
    opts.device.memory_bytes = 8 << 20;
    opts.supervisor.restarts_max = 1000;
    opts.log.level = "off";
    auto started = cluster::start(system_, opts, true);
    REQUIRE_MESSAGE(started.engaged(), (started ? "" : render(started.error())));
    home_ = std::move(*started);
  }

  caf::actor_system& system() { return system_; }
  coordinator_actor coordinator() const { return home_->coordinator(); }

private:
  struct threads_config : caf::actor_system_config {
    threads_config() { add_messages(*this); }
  };

  threads_config config_;
  caf::actor_system system_;
  std::unique_ptr<cluster> home_;
};

/// Six epochs of 20 steps over generated digits, in float64.
inline run_settings digits_by(std::string_view strategy, uint32_t ranks) {
  run_settings result;
  result.data = *make_synthetic_digits(7, 480, 60);
  result.ranks = ranks;
  result.epochs = 6;
  result.mirror = true;
  auto& job = result.job;
  job.as = precision::float64;
  constexpr uint64_t sizes[] = {784, 16, 16, 16, 10};
  job.layers = perceptron(sizes, nonlinearity::tanh);
  job.shape = {.layers = 4, .global_batch = 24, .micro_batch = 6};
  job.shape.uneven = job.shape.replicated = true;
  job.strategy = strategy_of(strategy);
  job.update = {.kind = optimizer_kind::adam, .rate = 0.003};
  return result;
}

/// Kills devices of the cluster during a training of `steps` steps, each some steps after the one before.
class killer {
public:
  killer(caf::actor_system& system, coordinator_actor coordinator, uint32_t kills, uint64_t seed, uint64_t steps)
    : thread_([this, &system, coordinator, kills, seed, steps] {
        client user{system, coordinator};
        std::mt19937_64 random{seed};
        uint64_t next = 0;
        for (uint32_t i = 0; i < kills; ++i) {
          next += 1 + random() % std::max<uint64_t>(1, steps / kills);
          if (!wait_for(next))
            return;
          for (auto calls = random() % 8; calls > 0; --calls) // somewhere in the step
            (void)user.devices();
          auto there = user.devices();
          if (!there || there->devices().empty())
            continue;
          const auto& victim = there->devices(static_cast<int>(random() % static_cast<size_t>(there->devices_size())));
          proto::FaultRequest death;
          death.set_kind(proto::FaultRequest::KILL);
          done_ += user.inject(device_id{victim.metadata().deviceid().value()}, death) ? 0 : 1;
        }
      }) {}
  ~killer() {
    {
      std::scoped_lock lock{mutex_};
      over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  void step_done() {
    {
      std::scoped_lock lock{mutex_};
      ++steps_done_;
    }
    changed_.notify_one();
  }
  uint32_t done() const { return done_; }

private:
  /// Whether there were this many steps before the end.
  bool wait_for(uint64_t steps) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return over_ || steps_done_ >= steps; });
    return !over_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t steps_done_ = 0;
  bool over_ = false;
  std::atomic<uint32_t> done_{0};
  std::thread thread_;
};

struct killed_run {
  std::vector<double> losses;  ///< Of each step.
  std::vector<double> weights; ///< Of all layers, at the end.
  uint32_t kills = 0;
  uint64_t given_up = 0;
};

/// In float64, with one spare device.
inline killed_run train_killed(run_settings settings, uint32_t kills, uint64_t seed) {
  threaded_cluster on{settings.ranks + 1};
  killed_run result;
  result.losses.resize(settings.data.training->count() / settings.job.shape.global_batch * settings.epochs);
  killer death{on.system(), on.coordinator(), kills, seed, result.losses.size()};
  run_watcher watcher;
  watcher.step_done = [&](const step_report& x) {
    result.losses[x.step] = x.loss;
    result.given_up += x.attempts - 1;
    death.step_done();
  };
  auto found = train(on.system(), on.coordinator(), std::move(settings), watcher);
  REQUIRE_MESSAGE(found.engaged(), (found ? "" : render(found.error())));
  result.kills = death.done();
  for (auto& [part, bytes] : whole_parts(*found->job, found->image))
    if (part.kind == value_kind::weight) {
      const auto before = result.weights.size();
      result.weights.resize(before + bytes.size() / sizeof(double));
      std::memcpy(result.weights.data() + before, bytes.data(), bytes.size());
    }
  return result;
}

/// Whether it ended like an undisturbed run.
inline void check_same(const killed_run& x, const killed_run& undisturbed) {
  REQUIRE(x.losses.size() == undisturbed.losses.size());
  for (size_t i = 0; i < x.losses.size(); ++i)
    CHECK(x.losses[i] == doctest::Approx(undisturbed.losses[i]).epsilon(1e-9));
  REQUIRE(x.weights.size() == undisturbed.weights.size());
  double farthest = 0;
  for (size_t i = 0; i < x.weights.size(); ++i)
    farthest = std::max(farthest, std::abs(x.weights[i] - undisturbed.weights[i]));
  CHECK(farthest < 1e-6);
}

} // namespace ringmaster::test
