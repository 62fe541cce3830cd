#include "gateway/gateway_command.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

TEST_CASE("gateway command: the address for HTTP is read before anything starts") {
  auto run = [](std::vector<std::string> args) { return gateway::gateway_command().run(args, stdout, stderr); };
  CHECK(run({"--http", "8080"}) == exit_usage);
  CHECK(run({"--help"}) == exit_ok);
}

TEST_CASE("gateway command: gRPC is not open to other hosts unless it is asked for") {
  auto run = [](std::vector<std::string> args) { return gateway::gateway_command().run(args, stdout, stderr); };
  CHECK(run({"--grpc", "0.0.0.0:0", "--device.memory-bytes=1MiB", "--log.level=off"}) == exit_usage);
  CHECK(run({"--grpc", "127.0.0.1:0", "--grpc-token", "/no/such/file"}) == exit_failed);
}
