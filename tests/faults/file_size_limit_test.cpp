// Under a limit on the size of files (ulimit -f), as shared login hosts have it: a sentence, and never SIGXFSZ.
#include "messages/errc.hpp"
#include "runtime/text/file_size_limit.hpp"
#include "tests/support/processes/launched_program.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"
#include "training/checkpoints/durable_file.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <cstddef>
#include <span>
#include <sys/resource.h>
#include <vector>

using namespace ringmaster;
using namespace ringmaster::launch;
using namespace ringmaster::test;

namespace {

/// A command whose files may not exceed a number of KiB, until its end.
struct limited_program {
  limited_program(int kib, std::vector<std::string> command) : program{words(kib, std::move(command))} {
    status = program.finish();
  }
  static std::vector<std::string> words(int kib, const std::vector<std::string>& command) {
    // bash counts in KiB, other shells in blocks of 512 bytes.
    std::vector<std::string> result{"bash", "-c", "ulimit -f \"$0\" && exec \"$@\"", std::to_string(kib)};
    result.insert(result.end(), command.begin(), command.end());
    return result;
  }

  launched_program program;
  int status = 0;
  const std::string &output = program.output, &error = program.error;
};

constexpr auto memory_sentence
  = "the memory file of each device needs 128 MiB, twice device.memory-bytes, and the limit on "
    "the size of a file is 1000 KiB for this process: raise it (ulimit -f unlimited), or make "
    "devices smaller, such as --device.memory-bytes=507904";

} // namespace

TEST_CASE("file size limit: devices whose memory files would be larger are refused, with the limit and what would do") {
  limited_program bench{1000,
                        {RINGMASTER_PROGRAM, "bench", "all_reduce", "--devices", "2", "-b", "4K", "-e", "4K", "-n", "1",
                         "--device.memory-bytes=64M"}};
  CHECK(bench.status == 1);
  CHECK_MESSAGE(contains(bench.error, memory_sentence), bench.error);
  limited_program ranks{1000,
                        {RINGMASTER_CAF_RUN, "--ranks", "2", "--tag-output", "--", RINGMASTER_RANK_PROGRAM, "sum"}};
  CHECK(ranks.status == 1);
  for (auto rank : {"[rank 0] ", "[rank 1] "})
    CHECK_MESSAGE(contains(ranks.error, rank), ranks.error);
  CHECK(contains(ranks.error, memory_sentence));
  CHECK_FALSE(contains(ranks.error, "ended by signal"));
  limited_program node{1000, {RINGMASTER_CAF_RUN, "--local", "1", "--", "true"}};
  CHECK(node.status == 125);
  CHECK_MESSAGE(contains(node.error, memory_sentence), node.error);
}

TEST_CASE("file size limit: what the sentence proposes does") {
  limited_program bench{1000,
                        {RINGMASTER_PROGRAM, "bench", "all_reduce", "--devices", "2", "-b", "4K", "-e", "4K", "-n", "1",
                         "--device.memory-bytes=507904"}};
  CHECK_MESSAGE(bench.status == 0, bench.error);
}

TEST_CASE("file size limit: files that a command writes are refused with the limit, and so is its own output") {
  temporary_directory dir;
  const auto json = (dir.path() / "plan.json").string();
  limited_program plan{
    4, {RINGMASTER_PROGRAM, "draw", "all_reduce", "--algorithm", "ring", "--ranks", "16", "--svg", json}};
  CHECK(plan.status == 1);
  CHECK_MESSAGE(contains(plan.error, "File too large: the limit on the size of a file is 4 KiB for this process"),
                plan.error);
  limited_program help{4, {"sh", "-c", "\"$0\" completion bash > \"$1\"", RINGMASTER_PROGRAM, json}};
  CHECK(help.status == 1);
  CHECK_MESSAGE(contains(help.error, "not all of the output could be written: File too large: the limit"), help.error);
}

TEST_CASE("file size limit: what of a journal finds no room is said with the limit, and the coordinator goes on") {
  temporary_directory dir;
  launched_program coordinator{limited_program::words(1, {RINGMASTER_PROGRAM, "coordinator", "--port", "0", "--journal",
                                                          (dir.path() / "journal").string()})};
  CHECK(coordinator.await_output("coordinator at 127.0.0.1:"));
  ::kill(coordinator.child.pid(), SIGINT); // it writes its files before it ends
  CHECK(coordinator.finish() < 128);
  CHECK_MESSAGE(contains(coordinator.error,
                         "File too large; the limit on the size of a file is 1 KiB for this process"),
                coordinator.error);
}

TEST_CASE("file size limit: a checkpoint that would be larger leaves what was there before, and says the limit") {
  struct lowered_limit {
    lowered_limit() {
      ::getrlimit(RLIMIT_FSIZE, &before);
      const rlimit low{4096, before.rlim_max};
      ::setrlimit(RLIMIT_FSIZE, &low);
      survive_file_size_limit();
    }
    ~lowered_limit() {
      ::setrlimit(RLIMIT_FSIZE, &before);
      ::signal(SIGXFSZ, SIG_DFL);
    }
    rlimit before{};
  };
  temporary_directory dir;
  const auto file = dir.path() / "model";
  const std::vector<std::byte> small(100), large(5000);
  const std::span<const std::byte> both[] = {small, large};
  CHECK(!training::write_durably(file, std::span{both, 1}));
  const lowered_limit limited;
  const auto problem = training::write_durably(file, std::span{both, 2});
  CHECK(
    render(problem).find(
      "File too large after 4096 of 5100 bytes: the limit on the size of a file is 4 KiB for this process; `ulimit -f "
      "unlimited` raises it")
    != std::string::npos);
  CHECK(std::filesystem::file_size(file) == 100);
}
