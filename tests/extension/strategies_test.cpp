// A training strategy that the library does not have, registered as a program does that links ringmaster::ringmaster
// alone: simulated, and run on a cluster of this process.
#include <ringmaster/simulate.hpp>
#include <ringmaster/strategy.hpp>
#include <ringmaster/training_run.hpp>

#include <doctest/doctest.h>

#include <algorithm>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

/// Data parallel whose ranks keep the first input only: a backward runs the forwards before it again.
strategy forget_and_repeat(rank& self, const model& m) {
  std::vector<weight> weights(m.layers);
  std::vector<optimizer_state> states(m.layers);
  for (uint32_t l = 0; l < m.layers; ++l)
    std::tie(weights[l], states[l]) = co_await self.load_weights(l);
  auto first = co_await self.input(samples_of(m, self.index(), self.world_size()));
  activation_gradient by_output;
  for (uint32_t l = m.layers; l-- > 0;) {
    activation x;
    for (uint32_t k = 0; k < l; ++k)
      x = co_await self.forward(k == 0 ? first : x, weights[k]);
    if (!by_output.valid()) {
      auto y = co_await self.forward(l == 0 ? first : x, weights[l]);
      by_output = co_await self.loss(y);
    }
    weight_gradient gradient;
    std::tie(gradient, by_output) = co_await self.backward(l == 0 ? first : x, weights[l], by_output);
    gradient = co_await self.all_reduce(std::move(gradient));
    co_await self.update(weights[l], states[l], std::move(gradient));
    co_await self.finish(std::move(weights[l]));
  }
}

const strategy_definition forgetful{
  .name = "forgetful", .what = "data parallel that keeps no inputs", .run = forget_and_repeat};

const auto forgetful_registered = register_strategy(forgetful);

std::vector<double> losses_of(const std::string& strategy_name) {
  auto home = cluster::open({"--device.count=2"}).value();
  home.devices(2, std::chrono::seconds{20}).value();
  training_settings settings;
  settings.layers = perceptron({28 * 28, 12, 11, 10});
  settings.data = synthetic_digits(7, 80, 20).value();
  settings.strategy = strategy_name;
  settings.ranks = 2;
  settings.epochs = 2;
  settings.global_batch = 20;
  settings.deterministic = true;
  std::vector<double> result;
  training_observer observer;
  observer.on_step = [&](uint64_t, double loss) { result.push_back(loss); };
  train(home, settings, observer).value();
  return result;
}

} // namespace

TEST_CASE("extension: a strategy from outside is found and simulated") {
  forgetful_registered.value();
  CHECK(std::ranges::count(strategy_names(), "forgetful") == 1);
  // The puzzles' rules, a sample on each of 4 ranks: forwards 1 + 2 more, 3 backwards, 3 updates of 0.5, 3 sums of 0.3;
  // before the backwards of layers 2, 1 and 0 run 3, 1 and 0 forwards. The last update starts 0.5 before the end.
  const auto found = simulate_step(program_of("forgetful").value(), {3, 4, 1}, 4, step_costs::puzzles).value();
  CHECK(found.time == doctest::Approx(3 + 1 + 3 + 2 * 0.5 + 3 * 0.3));
}

TEST_CASE("extension: a strategy from outside trains on a cluster as the built-in one of the same sums") {
  forgetful_registered.value();
  const auto found = losses_of("forgetful");
  CHECK(found.size() == 8);
  CHECK(found == losses_of("ddp"));
}

TEST_CASE("extension: a strategy that exists already, or is incomplete, is refused") {
  forgetful_registered.value();
  const auto refusal = [](auto change) {
    auto definition = forgetful;
    change(definition);
    const auto found = register_strategy(definition);
    REQUIRE(!found);
    CHECK(found.error().code == errc::invalid_argument);
    return found.error().message;
  };
  CHECK(refusal([](auto&) {}).find("there is one of that name") != std::string::npos);
  CHECK(refusal([](auto& x) { x.name = ""; }).find("it has no name") != std::string::npos);
  CHECK(refusal([](auto& x) { x.name = "all"; }).find("the name means all of them") != std::string::npos);
  CHECK(refusal([](auto& x) { x.name = "z", x.run = nullptr; }).find("it needs a program") != std::string::npos);
}
