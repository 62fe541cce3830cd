// A command that this tree does not have, in a program of its own beside a built-in one: help, options, errors, exit
// status and shell completion.
#include "messages/errc.hpp"
#include "runtime/algorithms/registry.hpp"
#include "tests/support/captured_command.hpp"
#include "tests/support/text_search.hpp"
#include "tools/options/commands.hpp"
#include "tools/options/program.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

/// Counts the steps of a rank's part of an all-reduce.
class steps_call final : public command_call {
  void declare(option_table& table) override {
    table.about("Counts the steps of one rank of an all-reduce.");
    table.text("--algorithm", algorithm_).says("A", "which one");
    table.number("--ranks", request_.world_size, 1, 1024).says("how many");
    table.number("--rank", request_.rank, 0, 1023).says("whose");
  }
  caf::error check() override {
    return request_.rank < request_.world_size
             ? caf::error{}
             : make_error(errc::invalid_argument,
                          fmt::format("--rank is {} of {} ranks", request_.rank, request_.world_size));
  }
  caf::expected<int> run(const console& to) override {
    request_.count = 1000;
    auto planned = plan(proto::ALL_REDUCE, algorithm_, request_);
    if (!planned)
      return std::move(planned.error());
    fmt::print(to.out, "{} steps in {} rounds\n", planned->steps.size(), planned->rounds);
    return exit_ok;
  }

  std::string algorithm_ = "ring";
  plan_request request_{.world_size = 4};
};

program own_program() {
  auto steps = tool_command::of<steps_call>("steps", "counts the steps of an all-reduce");
  return {"mine", "a program of your own", {steps, simulate_command()}, "That is all."};
}

test::outcome run_own_program(std::vector<std::string> args) {
  return test::captured([&](auto out, auto err) { return own_program().run(args, out, err); });
}

} // namespace

TEST_CASE("own program: a new command runs with its options and its exit status") {
  CHECK(run_own_program({"steps"}).out
        == "12 steps in 6 rounds\n"); // of a ring of 4: 3 + 3 rounds of a send and a receive
  CHECK(run_own_program({"steps", "--ranks=2", "--rank", "1"}).out == "4 steps in 2 rounds\n");
  auto unknown = run_own_program({"steps", "--algorithm=moon"});
  CHECK(unknown.code == exit_usage);
  CHECK(contains(unknown.err, "mine steps: there is no algorithm \"moon\" for all_reduce; there are: ring, "));
  CHECK(contains(run_own_program({"steps", "--rank=4"}).err, "--rank is 4 of 4 ranks"));
  CHECK(contains(run_own_program({"steps", "--ranc=1"}).err, "did you mean --rank"));
}

TEST_CASE("own program: help and shell completion have the new command beside a built-in one") {
  CHECK(contains(run_own_program({"help"}).out, "counts the steps of an all-reduce"));
  CHECK(contains(run_own_program({"steps", "--help"}).out, "--algorithm A"));
  const auto completion = run_own_program({"completion", "bash"}).out;
  CHECK(contains(completion, "--algorithm"));
  CHECK(contains(completion, "steps"));
  CHECK(run_own_program({"simulate", "all_reduce", "--ranks", "4", "--bytes", "1M"}).code == exit_ok);
}
