#include "gateway/gateway_command.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

TEST_CASE("gateway command: the address for HTTP is read before anything starts") {
  auto run = [](std::vector<std::string> args) { return gateway::gateway_command().run(args, stdout, stderr); };
  CHECK(run({"--http", "8080"}) == exit_usage);
  CHECK(run({"--help"}) == exit_ok);
}
