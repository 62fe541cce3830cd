// The files and variables that say which hosts a run has.
#include "runtime/launchers/slurm_hosts.hpp"
#include "runtime/text/endpoint.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tools/launch/hostfile.hpp"

namespace ringmaster::fuzz {

namespace {

void read_hosts(std::string_view bytes) {
  (void)launch::parse_hostfile(bytes, "hosts", 1, "localhost");
  const std::string text{bytes};
  (void)launch::slurm_places(text, "", 1, "localhost");
  (void)slurm_tasks(text);
  const auto line_end = text.find('\n'); // hosts, and tasks on each
  if (line_end != std::string::npos)
    (void)launch::slurm_places(text.substr(0, line_end), text.substr(line_end + 1), 1, "localhost");
}

const fuzz_target fuzz_hostfile{"hostfile", read_hosts};

} // namespace

} // namespace ringmaster::fuzz
