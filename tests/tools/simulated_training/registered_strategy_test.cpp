// A strategy that a program registered, in the commands and the search of this tree. It is in a program of its own: the
// other tests have the built-in strategies only.
#include "messages/errc.hpp"
#include "tests/support/captured_command.hpp"
#include "tests/support/text_search.hpp"
#include "tools/options/commands.hpp"
#include "training/search/strategy_search.hpp"
#include "training/strategies/strategies.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

/// Data parallel by another name, without micro-batches. Registered once, before other calls.
caf::error register_again() {
  auto again = *strategy_of("ddp");
  again.name = "again";
  again.what = "what a program registered";
  again.cut = batch_cut::never;
  again.plain = false;
  return register_strategy(again);
}
const auto registration_problem = register_again();

test::outcome train(std::vector<std::string> args) {
  args.insert(args.begin(), "train");
  return run_command(simulate_command(), args);
}

} // namespace

TEST_CASE("registered strategy: the command simulates it and lists it") {
  REQUIRE_MESSAGE(!registration_problem, render(registration_problem));
  auto alone = train({"--strategy=again", "--ranks=4", "--layers=3", "--global-batch=8"});
  CHECK(alone.code == 0);
  CHECK(alone.out.find("again on 4 ranks: 3 layers, a global batch of 8") == 0);
  CHECK(contains(train({"--strategy=agan"}).err, "did you mean again?"));
  CHECK(train({"--strategy=again", "--micro-batch=1"}).code == 2);
  CHECK(contains(train({"--strategy=all", "--ranks=4", "--layers=4", "--global-batch=8"}).out, "\n| again "));
  CHECK(contains(train({"--help"}).out, "what a program registered"));
}

TEST_CASE("registered strategy: a search finds it") {
  REQUIRE_MESSAGE(!registration_problem, render(registration_problem));
  auto all = search_strategies(3, 16, 4, puzzle_costs(), UINT64_MAX, 1000);
  CHECK(std::ranges::any_of(all.best, [](auto& x) { return x.which->name == "again"; }));
}
