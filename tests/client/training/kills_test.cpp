// Training on real threads, with devices that are killed at any time.
#include "actors/configuration/configuration.hpp"
#include "client/client.hpp"
#include "client/cluster.hpp"
#include "client/training/training_run.hpp"
#include "runtime/training/data/synthetic_digits.hpp"
#include "runtime/training/layers/plain_layers.hpp"
#include "tests/support/deterministic_system.hpp"

#include <doctest/doctest.h>

#include <random>
#include <thread>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

struct threads_config : caf::actor_system_config {
  threads_config() { add_messages(*this); }
};

constexpr uint64_t kill_epochs = 6;

run_settings digits_by(std::string_view strategy, uint32_t ranks) {
  run_settings result;
  result.data = *make_synthetic_digits(7, 480, 60);
  result.ranks = ranks;
  result.epochs = kill_epochs;
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

/// Kills devices of the cluster that are in a communicator, at random times, until it ends.
class killer {
public:
  killer(caf::actor_system& system, coordinator_actor coordinator, uint32_t kills, uint64_t seed)
    : thread_([this, &system, coordinator, kills, seed] {
        client user{system, coordinator};
        std::mt19937_64 random{seed};
        for (uint32_t i = 0; i < kills && !over_; ++i) {
          std::this_thread::sleep_for(std::chrono::milliseconds{1 + random() % 8});
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
    over_ = true;
    thread_.join();
  }
  uint32_t done() const { return done_; }

private:
  std::atomic<bool> over_{false};
  std::atomic<uint32_t> done_{0};
  std::thread thread_;
};

struct killed_run {
  std::vector<double> losses;
  uint32_t kills = 0;
  uint64_t given_up = 0;
};

killed_run train_killed(run_settings settings, uint32_t kills, uint64_t seed) {
  threads_config cfg;
  caf::actor_system system{cfg};
  options opts;
  opts.device.count = settings.ranks + 1;
  opts.device.memory_bytes = 8 << 20;
  opts.supervisor.restarts_max = 1000;
  opts.log.level = "off";
  auto home = cluster::start(system, opts, true);
  REQUIRE_MESSAGE(home.engaged(), (home ? "" : render(home.error())));
  killed_run result;
  result.losses.resize(settings.data.training->count() / settings.job.shape.global_batch * kill_epochs);
  run_watcher watcher;
  watcher.step_done = [&](const step_report& x) {
    result.losses[x.step] = x.loss;
    result.given_up += x.attempts - 1;
  };
  killer death{system, (*home)->coordinator(), kills, seed};
  auto found = train(system, (*home)->coordinator(), std::move(settings), watcher);
  REQUIRE_MESSAGE(found.engaged(), (found ? "" : render(found.error())));
  result.kills = death.done();
  return result;
}

} // namespace

TEST_CASE("thirty real kills change no loss") {
  const auto undisturbed = train_killed(digits_by("ddp", 1), 0, 1).losses;
  uint32_t kills = 0;
  uint64_t given_up = 0, seed = 1;
  for (auto* strategy : {"ddp", "ddp-overlap", "zero1", "zero3", "1f1b", "zb-v", "tensor", "ddp", "zero2", "gpipe"}) {
    CAPTURE(strategy);
    auto settings = digits_by(strategy, strategy == std::string_view{"zb-v"} ? 2 : 3);
    const auto found = train_killed(std::move(settings), 6, seed++);
    kills += found.kills;
    given_up += found.given_up;
    REQUIRE(found.losses.size() == undisturbed.size());
    for (size_t i = 0; i < undisturbed.size(); ++i)
      CHECK(found.losses[i] == doctest::Approx(undisturbed[i]).epsilon(1e-9));
  }
  CHECK(kills >= 30);
  CHECK(given_up > 0);
}
