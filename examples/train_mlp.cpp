// Trains a perceptron, 784-128-10, on drawn digits: four ranks, data parallel, each step's gradients added up among
// their devices; and tries it on digits that it has not seen.
//
//   build/release/examples/train_mlp
//
// prints, the same each time,
//
//   epoch 1: loss 1.5765 as it was trained; 416 of 500 held-out synthetic digits right, loss 0.9018
//   ...
//   epoch 4: loss 0.2278 as it was trained; 475 of 500 held-out synthetic digits right, loss 0.2340
#include "actors/configuration/configuration.hpp"
#include "client/cluster.hpp"
#include "client/training/training_run.hpp"
#include "runtime/configuration/places.hpp"
#include "training/data/synthetic_digits.hpp"
#include "training/layers/plain_layers.hpp"

#include <fmt/format.h>

using namespace ringmaster;

namespace {

constexpr uint64_t seed = 1234;

caf::expected<training::run_settings> settings() {
  auto digits = training::make_synthetic_digits(seed, 3000, 500);
  if (!digits)
    return std::move(digits.error());
  training::run_settings result;
  result.data = std::move(*digits);
  result.ranks = 4;
  result.epochs = 4;
  result.deterministic = true; // gradients are added in the order of the ranks
  auto& job = result.job;
  job.layers = training::perceptron(std::vector<uint64_t>{28 * 28, 128, 10});
  job.shape.layers = static_cast<uint32_t>(job.layers.size());
  job.shape.global_batch = 50; // of all ranks together
  job.shape.uneven = true;     // 50 are 13, 13, 12 and 12
  job.strategy = training::strategy_of("ddp");
  job.update = {.kind = training::optimizer_kind::adam, .rate = 1e-3};
  job.seed = seed;
  return result;
}

caf::error run(caf::actor_system& system, const coordinator_actor& coordinator) {
  auto what = settings();
  if (!what)
    return std::move(what.error());
  training::run_watcher watcher;
  watcher.epoch_done = [](const training::epoch_report& x) {
    fmt::print("epoch {}: loss {:.4f} as it was trained; {} of {} held-out synthetic digits right, loss {:.4f}\n",
               x.epoch, x.loss, x.held_out.right, x.held_out.samples,
               x.held_out.loss / static_cast<double>(x.held_out.samples));
  };
  watcher.note = [](const std::string& text) { fmt::print("{}\n", text); };
  auto found = training::train(system, coordinator, std::move(*what), watcher);
  return found ? caf::error{} : std::move(found.error());
}

} // namespace

int main(int argc, char** argv) {
  configuration cfg;
  caf::error problem = cfg.read(argc, argv, find_configuration());
  if (!problem && cfg.cli_helptext_printed)
    return 0;
  if (!problem)
    problem = cfg.check_remainder();
  if (problem) {
    fmt::print(stderr, "train_mlp: {}\n", render(problem));
    return code_of(problem) == errc::io_error ? 1 : 2; // 2: what the command line or the file says cannot be
  }
  auto opts = cfg.values();
  opts.log.level = "warn"; // this program tells it itself
  caf::actor_system system{cfg};
  auto home = cluster::open(system, opts); // of our own, or the one that caf-run has started
  problem = home ? run(system, (*home)->coordinator()) : std::move(home.error());
  if (problem)
    fmt::print(stderr, "train_mlp: {}\n", render(problem));
  return problem ? 1 : 0;
}
