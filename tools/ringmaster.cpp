// The `ringmaster` program: finds the command and hands it its arguments.
#include "tools/bench/bench_command.hpp"
#include "tools/bench/chart_command.hpp"
#include "tools/demo/demo_command.hpp"
#include "tools/prove/draw_command.hpp"
#include "tools/tune/explain_command.hpp"
#include "tools/cluster/destroy_command.hpp"
#include "tools/cluster/info_command.hpp"
#include "tools/cluster/log_command.hpp"
#include "tools/cluster/node_commands.hpp"
#include "tools/training/plan_command.hpp"
#include "tools/prove/prove_command.hpp"
#include "tools/puzzles/puzzles_command.hpp"
#include "tools/simulate/simulate_command.hpp"
#include "tools/tune/tune_command.hpp"

#include <fmt/format.h>
#include <map>

namespace {

constexpr auto help = R"(usage: ringmaster COMMAND [options]

  demo          an all-reduce on simulated devices, with one that dies in the middle
  bench         how fast collectives are here, in nccl-tests' columns
  chart         what bench has measured, as a picture
  prove         proves collective algorithms, or a schedule in a file
  simulate      a collective in virtual time, on a network of any size; simulate train: a step of training
  plan          the fastest ways to train a model on so many GPUs
  puzzles       training strategies to write yourself, judged in virtual time
  draw          who sends what to whom in a collective, as text or as a picture
  explain       which algorithm would be picked for a collective, and why
  tune          measures here what that goes by, and writes it into the configuration
  coordinator   the host side of a cluster of several processes
  node          a process with devices that joins a coordinator
  info          who is in a cluster, and what it is doing
  destroy       ends communicators that somebody has left behind
  log           what a journal says: list, filter, export as a trace
  help          this text

ringmaster COMMAND --help says what a command takes. `caf-run` starts a whole cluster.
)";

using arguments = const std::vector<std::string>&;
using command = int (*)(arguments);

} // namespace

int main(int argc, char** argv) {
  using namespace ringmaster;
  const std::map<std::string, command> commands{
    {"bench", [](arguments x) { return bench_command(x); }},
    {"chart", [](arguments x) { return chart_command(x); }},
    {"coordinator", [](arguments x) { return coordinator_command(x); }},
    {"demo", [](arguments x) { return demo_command(x); }},
    {"destroy", [](arguments x) { return destroy_command(x); }},
    {"draw", [](arguments x) { return draw_command(x); }},
    {"explain", [](arguments x) { return explain_command(x); }},
    {"info", [](arguments x) { return info_command(x); }},
    {"log", [](arguments x) { return log_command(x); }},
    {"node", [](arguments x) { return node_command(x); }},
    {"plan", [](arguments x) { return plan_command(x); }},
    {"prove", [](arguments x) { return prove_command(x); }},
    {"puzzles", [](arguments x) { return puzzles_command(x); }},
    {"simulate", [](arguments x) { return simulate_command(x); }},
    {"tune", [](arguments x) { return tune_command(x); }},
  };
  std::vector<std::string> args{argv + 1, argv + argc};
  if (args.empty() || args[0] == "help" || args[0] == "--help" || args[0] == "-h") {
    fmt::print("{}", help);
    return args.empty() ? 2 : 0;
  }
  auto found = commands.find(args[0]);
  if (found == commands.end()) {
    fmt::print(stderr, "ringmaster: there is no command \"{}\"; `ringmaster help` lists those there are\n", args[0]);
    return 2;
  }
  args.erase(args.begin());
  return found->second(args);
}
