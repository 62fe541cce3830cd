#pragma once

#include "tests/support/processes/launched_program.hpp"
#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <string>

namespace ringmaster::test {

/// `ringmaster coordinator` as a process of its own, at a port that was free.
struct started_coordinator {
  started_coordinator() {
    REQUIRE(program.wait_until([&] { return std::filesystem::exists(port_file); }));
    std::string port;
    std::ifstream{port_file} >> port;
    where += port;
  }

  pid_t pid() const { return program.child.pid(); }

  temporary_directory dir;
  std::string port_file = (dir.path() / "port").string();
  launch::launched_program program{{RINGMASTER_PROGRAM, "coordinator", "--port", "0", "--port-file", port_file}};
  std::string where = "127.0.0.1:";
};

} // namespace ringmaster::test
