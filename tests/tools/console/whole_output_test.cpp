#include "tools/console/whole_output.hpp"

#include "tests/support/captured_command.hpp"
#include "tools/options/commands.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

/// What a command does that writes to a disk without any room, and what it says.
outcome on_full_disk(const tool_command& which, const std::vector<std::string>& args) {
  auto* full = std::fopen("/dev/full", "w");
  REQUIRE(full != nullptr);
  auto result = captured([&](auto, auto err) { return which.run(args, full, err); });
  std::fclose(full);
  return result;
}

} // namespace

TEST_CASE("whole output: what could not be written is an error, whether it is short or longer than any buffer") {
  for (size_t bytes : {1, 1 << 20}) {
    auto* full = std::fopen("/dev/full", "w");
    auto ended = captured([&](auto, auto err) {
      return with_whole_output("paint", full, err, 3, [&] {
        fmt::print(full, "{}", std::string(bytes, 'x'));
        return 0;
      });
    });
    std::fclose(full);
    CHECK(ended.code == 3);
    CHECK(ended.err == "paint: not all of the output could be written: No space left on device\n");
  }
}

TEST_CASE("whole output: a status that is an error already stays, and what is whole is as it was") {
  auto whole = captured([](auto out, auto err) {
    return with_whole_output("paint", out, err, 3, [&] { return fmt::print(out, "red"), 5; });
  });
  CHECK(whole.code == 5);
  CHECK(whole.out == "red");
  CHECK(whole.err == "");
}

TEST_CASE("whole output: commands and their help end with status 1 on a full disk") {
  CHECK(on_full_disk(simulate_command(), {"all_reduce", "--ranks=2"}).code == 1);
  CHECK(on_full_disk(draw_command(), {"all_reduce", "--ranks=2"}).code == 1);
  auto help = on_full_disk(simulate_command(), {"train", "--help"});
  CHECK(help.code == 1);
  CHECK(help.err.starts_with("ringmaster simulate train: not all of the output could be written"));
}
