// The `ringmaster` program: a table of commands. Another one is a row here, and files of its own.
#include "runtime/configuration/places.hpp"
#include "tools/diagnose/diagnose_command.hpp"
#include "tools/options/commands.hpp"
#include "tools/options/program.hpp"

namespace {

std::string configuration_line() {
  auto file = ringmaster::find_configuration();
  return "configuration " + (file ? file->string() : "none: the defaults") + "\n";
}

} // namespace

int main(int argc, char** argv) {
  using namespace ringmaster;
  const program ringmaster{"ringmaster",
                           "collective communication and training on simulated devices",
                           {
                             demo_command(),   train_for_real_command(), bench_command(),        chart_command(),
                             prove_command(),  simulate_command(),       plan_command(),         partition_command(),
                             layout_command(), puzzles_command(),        draw_command(),         explain_command(),
                             tune_command(),   coordinator_command(),    node_command(),         secret_command(),
                             status_command(), info_command(),           kill_command(),         hang_command(),
                             slow_command(),   drain_command(),          destroy_command(),      absent_command(),
                             log_command(),    diagnose_command(),       certificates_command(),
                           },
                           "`caf-run` starts a whole cluster.",
                           configuration_line};
  return ringmaster.run({argv + 1, argv + argc});
}
