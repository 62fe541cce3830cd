// The cluster launcher:  caf-run --local 4 -- ./my_program
// Starts a coordinator and its nodes, runs a program against them, and stops everything. See tools/launch/.
#include "messages/errc.hpp"
#include "tools/launch/cluster_launch.hpp"
#include "tools/launch/program_path.hpp"
#include "tools/launch/scratch_directory.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <unistd.h>

using namespace ringmaster;
using namespace ringmaster::launch;

namespace {

int refuse(const caf::error& err, int status = cluster_launch::failed_status) {
  write_to_standard_error(fmt::format("caf-run: {}\n", render(err)));
  return status;
}

/// A pipe must not get the number of a standard stream that our caller has closed.
void fill_standard_streams() {
  int fd = 0;
  do
    fd = ::open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO);
  ::close(fd);
}

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

} // namespace

int main(int argc, char** argv) {
  fill_standard_streams();
  auto line = parse_command_line({argv + 1, argv + argc});
  if (!line)
    return refuse(line.error());
  if (line->help) {
    fmt::print("{}", usage);
    return 0;
  }
  auto places = places_of(*line);
  if (!places)
    return refuse(places.error());
  auto directory = own_directory();
  if (!directory)
    return refuse(directory.error());
  if (line->binary.empty())
    line->binary = *directory + "/ringmaster";
  auto* search_path = std::getenv("PATH");
  auto program = find_program(line->program.front(), search_path != nullptr ? search_path : "", *directory);
  if (!program)
    return refuse(program.error(), code_of(program.error()) == errc::io_error ? 126 : 127);
  line->program.front() = *program;
  auto scratch = scratch_directory::make();
  if (!scratch)
    return refuse(scratch.error());
  auto watch = process_watch::make();
  if (!watch)
    return refuse(watch.error());
  return cluster_launch(*line, *places, std::move(*scratch), **watch).run();
}
