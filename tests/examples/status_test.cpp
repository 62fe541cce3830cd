#include "tests/support/launched_program.hpp"

#include <doctest/doctest.h>

#include <filesystem>

using namespace ringmaster;

TEST_CASE("examples: an option that is none ends with status 2, and -h is help") {
  const auto folder = std::filesystem::path{RINGMASTER_PROGRAM}.parent_path() / "examples";
  for (auto* name : {"all_reduce", "fault_injection", "my_algorithm", "my_strategy", "ranks"}) {
    const auto program = (folder / name).string();
    if (!std::filesystem::exists(program)) {
      MESSAGE(program << " is not built");
      continue;
    }
    CAPTURE(name);
    launch::launched_program refused{{program, "--sppeed=3"}};
    CHECK(refused.finish() == 2);
    CHECK(refused.error.find("is no option here") != std::string::npos);
    launch::launched_program help{{program, "-h"}};
    CHECK(help.finish() == 0);
    CHECK(help.output.starts_with(std::string{"usage: "} + name));
  }
}
