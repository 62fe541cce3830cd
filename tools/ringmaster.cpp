// The `ringmaster` program: finds the command and hands it its arguments.
#include "tools/bench_command.hpp"
#include "tools/demo_command.hpp"
#include "tools/draw_command.hpp"
#include "tools/explain_command.hpp"
#include "tools/log_command.hpp"
#include "tools/node_commands.hpp"
#include "tools/prove_command.hpp"
#include "tools/simulate_command.hpp"

#include <fmt/format.h>
#include <map>

namespace {

constexpr auto help = R"(usage: ringmaster COMMAND [options]

  demo          an all-reduce on simulated devices, with one that dies in the middle
  bench         how fast collectives are here, in nccl-tests' columns
  coordinator   the host side of a cluster of several processes
  node          a process with devices that joins a coordinator
  info          who is in a cluster
  log           what a journal says: list, filter, export as a trace
  prove         proves collective algorithms, or a schedule in a file
  simulate      a collective in virtual time, on a network of any size
  draw          who sends what to whom in a collective, as text or as a picture
  explain       which algorithm would be picked for a collective, and why
  help          this text

ringmaster COMMAND --help says what a command takes. `caf-run` starts a whole cluster.
)";

using command = int (*)(const std::vector<std::string>&);

int log(const std::vector<std::string>& args) {
  return ringmaster::log_command(args);
}

int prove(const std::vector<std::string>& args) {
  return ringmaster::prove_command(args);
int simulate(const std::vector<std::string>& args) {
  return ringmaster::simulate_command(args);
}

int draw(const std::vector<std::string>& args) {
  return ringmaster::draw_command(args);
}

int explain(const std::vector<std::string>& args) {
  return ringmaster::explain_command(args);
}

} // namespace

int main(int argc, char** argv) {
  const std::map<std::string, command> commands{{"demo", ringmaster::demo_command},
                                                {"bench", ringmaster::bench_command},
                                                {"coordinator", ringmaster::coordinator_command},
                                                {"node", ringmaster::node_command},
                                                {"info", ringmaster::info_command},
                                                {"log", log},
                                                {"prove", prove}};
                                                {"simulate", simulate},
                                                {"draw", draw},
                                                {"explain", explain}};
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
