#include "tools/launch/launch_command.hpp"

#include "messages/errc.hpp"
#include "runtime/configuration/places.hpp"
#include "tools/launch/cluster_launch.hpp"
#include "tools/launch/program_path.hpp"
#include "tools/launch/scratch_directory.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace ringmaster::launch {

namespace {

caf::expected<std::vector<node_place>> places_of(const command_line& line) {
  if (line.hostfile.empty())
    return local_places(line.local_nodes, line.devices_per_node);
  std::ifstream file(line.hostfile);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf()))
    return make_error(errc::io_error, fmt::format("cannot read the hostfile {}, or it is empty", line.hostfile));
  char own_host[256] = {};
  ::gethostname(own_host, sizeof own_host - 1);
  return parse_hostfile(text.str(), line.hostfile, line.devices_per_node, own_host);
}

class launch_call final : public command_call {
  void declare(option_table& table) override { line_.add_to(table); }
  caf::error check() override { return line_.check(); }

  caf::expected<int> run(const console& to) override {
    auto places = places_of(line_);
    if (!places)
      return std::move(places.error());
    const auto directory = program_directory().string();
    if (directory.empty())
      return make_error(errc::io_error, "cannot read /proc/self/exe");
    if (line_.binary.empty())
      line_.binary = directory + "/ringmaster";
    auto* search_path = std::getenv("PATH");
    auto program = find_program(line_.program.front(), search_path != nullptr ? search_path : "", directory);
    if (!program) {
      fmt::print(to.err, "caf-run: {}\n", render(program.error()));
      return code_of(program.error()) == errc::io_error ? 126 : 127;
    }
    line_.program.front() = *program;
    auto scratch = scratch_directory::make();
    if (!scratch)
      return std::move(scratch.error());
    auto watch = process_watch::make();
    if (!watch)
      return std::move(watch.error());
    return cluster_launch(line_, *places, std::move(*scratch), **watch).run();
  }

  command_line line_;
};

} // namespace

tool_command launch_command() {
  auto result = tool_command::of<launch_call>("caf-run", "starts a cluster and runs a program against it");
  result.program = "";
  result.failed_status = result.usage_status = cluster_launch::failed_status;
  return result;
}

} // namespace ringmaster::launch
