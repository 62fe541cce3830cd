// `ringmaster train` as several processes, each a rank where its device is.
#include "tests/support/launched_program.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

using namespace ringmaster;

namespace {

std::vector<std::string> training_of(const std::vector<std::string>& before, const std::vector<std::string>& more) {
  auto result = before;
  for (auto& each : {"train", "--samples", "600", "--sizes", "32-16", "--deterministic", "--precision", "float64"})
    result.push_back(each);
  result.insert(result.end(), more.begin(), more.end());
  return result;
}

const std::vector<std::string> three_processes{RINGMASTER_CAF_RUN, "--ranks", "3", "--", RINGMASTER_PROGRAM};

/// The part of the JSON between two names, which has no time in it.
std::string losses_in(const std::string& output) {
  const auto begin = output.find("\"step_losses\""), end = output.find("\"notes\"");
  REQUIRE_MESSAGE(begin < end, output);
  return output.substr(begin, end - begin);
}

/// Its processes, as the launcher's log or the system knows them.
std::vector<pid_t> children_of(pid_t parent) {
  std::ifstream file{fmt::format("/proc/{0}/task/{0}/children", parent)};
  std::vector<pid_t> result;
  for (pid_t each = 0; file >> each;)
    result.push_back(each);
  return result;
}

bool trains(pid_t x) {
  std::ifstream file{fmt::format("/proc/{}/cmdline", x)};
  const std::string line{std::istreambuf_iterator<char>{file}, {}};
  return line.find(std::string{"train\0--samples", 15}) != std::string::npos
         && line.find("caf-run") == std::string::npos;
}

} // namespace

TEST_CASE("three processes train to the bits of three ranks in one") {
  for (auto* strategy : {"ddp", "zero3", "1f1b"}) {
    const std::vector<std::string> how{"--strategy", strategy, "--micro-batch", "8", "--epochs", "2", "--json"};
    launch::launched_program together{training_of(three_processes, how)};
    auto more = how;
    more.insert(more.end(), {"--ranks", "3"});
    launch::launched_program alone{training_of({RINGMASTER_PROGRAM}, more)};
    CHECK_MESSAGE(together.finish() == 0, together.error);
    CHECK_MESSAGE(alone.finish() == 0, alone.error);
    CHECK(losses_in(together.output) == losses_in(alone.output));
  }
}

TEST_CASE("a process that is killed costs its step, and the others end well") {
  launch::launched_program run{training_of(three_processes, {"--epochs", "40"})};
  REQUIRE(run.await_output("epoch  2/40"));
  auto ranks = children_of(run.child.pid());
  std::erase_if(ranks, [](pid_t x) { return !trains(x); });
  REQUIRE(ranks.size() == 3);
  ::kill(ranks.back(), SIGKILL);
  REQUIRE_MESSAGE(run.await_output("epoch 40/40"), (run.output + run.error));
  CHECK(run.finish() != 0); // the launcher tells that one was killed
  CHECK((run.output + run.error).find("is lost: its process is gone") != std::string::npos);
  CHECK(run.output.find(" samples/s on 2 ranks") != std::string::npos);
}
