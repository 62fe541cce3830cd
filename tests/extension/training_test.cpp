// A training strategy that the library does not have, added as an outside program would: through public headers,
// without a line of the library changed. It goes the whole way: simulated by itself, by the command, and found by a
// search.
#include "messages/errc.hpp"
#include "tests/support/captured_command.hpp"
#include "tools/options/commands.hpp"
#include "training/search/strategy_search.hpp"
#include "training/simulated/simulator.hpp"
#include "training/strategies/strategies.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

/// Data parallel whose ranks keep no inputs but the first: a backward runs the forwards before it again.
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

/// What a bound may say of it: it holds one input of all, not one of each layer, as if it gathered what it needs.
const known_strategy forgetful{.name = "forgetful",
                               .what = "data parallel that keeps no inputs",
                               .run = forget_and_repeat,
                               .check = check_data_parallel,
                               .cut = batch_cut::never,
                               .gathers = sharded::the_model};

const auto refused_strategy = register_strategy(forgetful);

test::outcome train(std::vector<std::string> args) {
  args.insert(args.begin(), "train");
  return test::run_command(simulate_command(), args);
}

} // namespace

TEST_CASE("extension: a strategy from outside is found and simulated") {
  REQUIRE_MESSAGE(!refused_strategy, render(refused_strategy));
  auto* which = strategy_of("forgetful");
  REQUIRE(which != nullptr);
  // The puzzles' rules, a sample on each of 4 ranks: forwards 1 + 2 more, 3 backwards, 3 updates of 0.5, 3 sums of 0.3;
  // before the backwards of layers 2, 1 and 0 run 3, 1 and 0 forwards.
  const model m{3, 4, 1};
  auto found = simulate([&](rank& self) { return which->run(self, m); }, m, 4, puzzle_costs());
  REQUIRE_MESSAGE(found.engaged(), render(found.error()));
  CHECK(found->end == doctest::Approx(3 + 1 + 3 + 3 * 0.5 + 3 * 0.3));
  CHECK(found->memory_left == 0);
}

TEST_CASE("extension: a strategy from outside is the command's, its tables' and a search's") {
  REQUIRE_MESSAGE(!refused_strategy, render(refused_strategy));
  auto alone = train({"--strategy=forgetful", "--ranks=4", "--layers=3", "--global-batch=8"});
  CHECK(alone.code == 0);
  CHECK(alone.out.find("forgetful on 4 ranks: 3 layers, a global batch of 8") == 0);
  CHECK(train({"--strategy=forgetfu"}).err.find("did you mean forgetful?") != std::string::npos);
  CHECK(train({"--strategy=forgetful", "--micro-batch=1"}).code == 2);
  CHECK(train({"--strategy=all", "--ranks=4", "--layers=4", "--global-batch=8"}).out.find("\n| forgetful ")
        != std::string::npos);
  CHECK(train({"--help"}).out.find("data parallel that keeps no inputs") != std::string::npos);
  auto all = search_strategies(3, 16, 4, puzzle_costs(), UINT64_MAX, 1000);
  CHECK(std::ranges::any_of(all.best, [](auto& x) { return x.which->name == "forgetful"; }));
}

TEST_CASE("extension: a strategy that is there already, or incomplete, is not registered") {
  auto refusal = [](auto change) {
    auto x = forgetful;
    change(x);
    return render(register_strategy(x));
  };
  CHECK(refusal([](auto&) {}).find("there is one of that name") != std::string::npos);
  CHECK(refusal([](auto& x) { x.name = ""; }).find("it has no name") != std::string::npos);
  CHECK(refusal([](auto& x) { x.name = "all"; }).find("the name means all of them") != std::string::npos);
  CHECK(refusal([](auto& x) { x.name = "z", x.run = nullptr; }).find("it needs a program") != std::string::npos);
}
