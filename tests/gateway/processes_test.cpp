// Deployed as the lab suggests: coordinator, devices and gateway are processes of their own, and so are two clients in
// two languages, which speak two dialects at once.
#include "tests/support/processes/kill_coordinator.hpp"
#include "tests/support/processes/launched_program.hpp"
#include "tests/support/text_search.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

using namespace ringmaster::launch;
using namespace ringmaster::test;

namespace {

/// "127.0.0.1:PORT" with ports that are free at the moment.
std::vector<std::string> free_addresses(size_t wanted) {
  std::vector<int> open;
  std::vector<std::string> result;
  for (size_t i = 0; i < wanted; ++i) {
    open.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof own;
    REQUIRE(::bind(open.back(), reinterpret_cast<sockaddr*>(&own), size) == 0);
    REQUIRE(::getsockname(open.back(), reinterpret_cast<sockaddr*>(&own), &size) == 0);
    result.push_back("127.0.0.1:" + std::to_string(ntohs(own.sin_port)));
  }
  for (auto fd : open)
    ::close(fd);
  return result;
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string result;
  for (auto& word : words)
    result += (result.empty() ? "" : between) + word;
  return result;
}

} // namespace

TEST_CASE("gateway processes: clients in C++ and Python, in two dialects at once, under caf-run") {
  const auto at = free_addresses(8);
  script_directory directory;
  const auto listeners = directory.write(
    "listeners.conf", "[lab]\naddress = " + at[0] + "\ndevices = " + joined({at[1], at[2]}, ", ")
                        + "\n[other]\naddress = " + at[3] + "\ndevices = " + joined({at[4], at[5], at[6], at[7]}, ", ")
                        + "\nstatus = READY, IN_PROGRESS, SUCCESS, FAILED\nreduce-op = NIL, SUM, "
                          "PROD\nfirst-status = READY\ncount = bytes\ndatatype = float32\n"
                          "window = 0x1000 1M\ndevice-ids = 0\n");
  // The last two of the four devices are free: the other client names them by their addresses.
  const auto both = directory.write(
    "both",
    "#!/bin/sh\n" RINGMASTER_COURSE_LAB_CLIENT " " + joined({at[0], at[1], at[2]}, " ") + " >" + directory.path("lab")
      + " &\n/usr/bin/python3 " RINGMASTER_SOURCE_DIR "/tests/gateway/other_client.py " RINGMASTER_COURSE_STUBS " "
      + joined({at[3], at[6], at[7]}, " ") + " >" + directory.path("other") + " && wait $!\n");
  launched_program run{
    {RINGMASTER_CAF_RUN, "--local", "4", "--devices-per-node", "1", "--gateway", listeners, "--", both}};
  CHECK(run.finish() == 0);
  CAPTURE(run.error);
  CHECK(directory.read("lab")
        == "status: SUCCESS\npart A, rank 0: 11 22 33 44\npart A, rank 1: 11 22 33 44\nstream: SUCCESS\n"
           "part B, between devices: 1 2 3 4\nstream: SUCCESS\npart B, from outside: 10 20 30 40\n");
  CHECK(directory.read("other")
        == "devices: 2 at 0x1000 3 at 0x1000\nbefore: READY\nall-reduce: True\nnaive: True\nafter: SUCCESS\n"
           "values: 6.0 10.0 14.0\nvalues: 6.0 10.0 14.0\na reduction without a name: INVALID_ARGUMENT, "
           "invalid_argument\nan unknown method: UNIMPLEMENTED, no code\nan unknown communicator: NOT_FOUND, "
           "unknown_communicator\ndestroyed: True\n");
}

TEST_CASE("gateway processes: a gateway serves on after the coordinator was killed and restarted") {
  const auto at = free_addresses(3);
  script_directory directory;
  const auto listeners = directory.write("listeners.conf",
                                         "[lab]\naddress = " + at[0] + "\ndevices = " + at[1] + ", " + at[2] + "\n");
  const auto client = RINGMASTER_COURSE_LAB_CLIENT " " + joined(at, " ") + " >";
  const auto story = directory.write("story", "#!/bin/sh\n" + client + directory.path("before") + " || exit 1\n"
                                                + kill_coordinator + client + directory.path("after") + " || true\n");
  launched_program run{
    {RINGMASTER_CAF_RUN, "--local", "2", "--devices-per-node", "1", "--gateway", listeners, "--", story}};
  CHECK(run.finish() == 0);
  CAPTURE(run.error);
  CHECK(run.output.find("it was killed") != std::string::npos);
  CHECK(contains(directory.read("before"), "part B, from outside: 10 20 30 40\n"));
  for (auto said : {"part A, rank 0: 11 22 33 44\n", "part A, rank 1: 11 22 33 44\n",
                    "part B, between devices: 1 2 3 4\n", "knows transfer 4711 already"}) // that of before
    CHECK(contains(directory.read("after"), said));
}

TEST_CASE("gateway processes: without a program caf-run serves until a signal comes") {
  const auto at = free_addresses(1);
  launched_program run{{RINGMASTER_CAF_RUN, "--local", "1", "--gateway", at[0]}};
  CHECK(run.await_output("gRPC lab at " + at[0]));
  run.child.signal(SIGTERM);
  CHECK(run.finish() == 0);
}

TEST_CASE("gateway processes: an address in use, and a file with a mistake") {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof own;
  REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&own), size) == 0);
  REQUIRE(::listen(fd, 1) == 0);
  REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0);
  launched_program busy{
    {RINGMASTER_GATEWAY_PROGRAM, "--device.count=1", "--grpc", "127.0.0.1:" + std::to_string(ntohs(own.sin_port))}};
  CHECK(busy.finish() == 1);
  CHECK(contains(busy.error, "cannot listen for gRPC at 127.0.0.1:"));
  ::close(fd);
  script_directory directory;
  launched_program wrong{
    {RINGMASTER_GATEWAY_PROGRAM, "--grpc", directory.write("l.conf", "[a]\naddress = 127.0.0.1:0\ncuont = bytes\n")}};
  CHECK(wrong.finish() == 1);
  CHECK(contains(wrong.error, "l.conf: line 3: there is no key \"cuont\"; did you mean \"count\"?"));
}
