// The cluster launcher:  caf-run --local 4 -- ./my_program
// Starts a coordinator and its nodes, runs a program against them, and stops everything. See tools/launch/.
#include "tools/console/whole_output.hpp"
#include "tools/options/bash_completion.hpp"
#include "tools/options/commands.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

using namespace ringmaster;

namespace {

/// Opens standard streams that the caller has closed, so that no pipe gets their numbers.
void fill_standard_streams() {
  int fd = 0;
  do
    fd = ::open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO);
  ::close(fd);
}

} // namespace

int main(int argc, char** argv) {
  fill_standard_streams();
  const auto command = launch::launch_command();
  std::vector<std::string> args{argv + 1, argv + argc};
  if (args == std::vector<std::string>{"help"})
    args = {"--help"};
  if (args != std::vector<std::string>{"--completion"})
    return command.run(args);
  return with_whole_output("caf-run", stdout, stderr, command.failed_status, [&] {
    fmt::print("{}", bash_completion(command));
    return exit_ok;
  });
}
