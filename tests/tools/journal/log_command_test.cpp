#include "tools/options/commands.hpp"

#include "runtime/journal/journal_store.hpp"
#include "tests/support/captured_command.hpp"
#include "tests/support/file_content.hpp"
#include "tests/support/processes/child_process.hpp"
#include "tests/support/records.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

outcome run(const std::vector<std::string>& args) {
  return run_command(log_command(), args);
}

long lines(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

// 7 records of each success, then a death that fails an operation.
void write_journal(const std::filesystem::path& dir, uint64_t successes = 1) {
  journal_store::options opts;
  opts.dir = dir;
  auto journal = journal_store::open(opts);
  REQUIRE(journal);
  for (uint64_t i = 1; i <= successes; ++i)
    REQUIRE(!(*journal)->append(whole_operation(7, i)));
  const auto next = successes + 1;
  std::vector<proto::Record> more{operation_enqueued(7, next, 5), device_died(3, "killed", 6),
                                  operation_ended(7, next, gpu_sim::FAILED, 7),
                                  operation_enqueued(7, next + 1, 86'400'000)};
  REQUIRE(!(*journal)->append(more));
}

} // namespace

TEST_CASE("log command: lists, filters and prints JSON") {
  temporary_directory dir;
  write_journal(dir.path());
  auto path = dir.path().string();
  auto all = run({path});
  CHECK(all.code == 0);
  CHECK(all.err.empty());
  CHECK(lines(all.out) == 13); // 11 records on two days
  CHECK(!contains(all.out, "\x1b"));
  CHECK(lines(run({path, "--last", "2", "--relative"}).out) == 2);
  CHECK(lines(run({path, "--last=2", "--relative"}).out) == 2);
  CHECK(lines(run({path, "--device", "0x3", "--relative"}).out) == 2);
  CHECK(lines(run({"--relative", "--outcome", "failed", path}).out) == 2);
  CHECK(lines(run({path, "--relative", "--outcome", "in_progress"}).out) == 1);
  CHECK(lines(run({path, "--relative", "--communicator", "8"}).out) == 0);
  CHECK(contains(run({path, "--kind", "rank", "--communicator", "8"}).err,
                 "matches; shared-memory operations have one record for all ranks: --kind operation"));
  auto json = run({path, "--json", "--kind", "device"});
  CHECK(json.out.starts_with("{\"time_ns\":"));
  CHECK(lines(json.out) == 1);
}

TEST_CASE("log command: --explain tells the story of one operation, and says which there are") {
  temporary_directory dir;
  write_journal(dir.path(), 3);
  const auto path = dir.path().string();
  const auto found = run({path, "--explain", "7:4"});
  CHECK(found.code == 0);
  CHECK(found.out.starts_with("operation 4 of communicator 7: ring all_reduce of 512 float64, sum, 4 KiB a rank\n"));
  CHECK(contains(found.out, "it FAILED: device 0x3 died"));
  CHECK(contains(run({path, "--explain", "7:99"}).err,
                 "knows no operation 7:99: communicator 7 has operations 1 to 5"));
  CHECK(contains(run({path, "--explain", "8:1"}).err, "there are operations of communicator 7"));
  for (auto* wrong : {"17", "7:", ":4", "7:x", "7:4:1"})
    CHECK(contains(run({path, "--explain", wrong}).err, "is no operation: it is named COMMUNICATOR:SEQUENCE"));
  CHECK(contains(run({path, "--explain", "7:4", "--json"}).err, "so it does not go with --json"));
}

TEST_CASE("log command: --last counts steps of training, not all records") {
  temporary_directory dir;
  journal_store::options opts;
  opts.dir = dir.path();
  auto journal = journal_store::open(opts);
  REQUIRE(journal);
  for (uint64_t step : {0, 1, 2}) {
    proto::Record record;
    auto& x = *record.mutable_training_step();
    x.set_step(step);
    x.set_first_sample(2 * step);
    x.set_samples(2);
    x.set_data_samples(6);
    REQUIRE(!(*journal)->append(std::vector{record}));
    REQUIRE(!(*journal)->append(whole_operation(7, step + 1)));
  }
  journal->reset();
  const auto found = run({dir.path().string(), "--samples", "--last", "2"});
  CHECK(found.err.empty());
  CHECK(contains(found.out, "step 1 over"));
  CHECK(contains(found.out, "step 2 over"));
  CHECK(!contains(found.out, "step 0 over"));
}

TEST_CASE("log command: --outcome failed shows operations, commands, refused calls and communicators") {
  temporary_directory dir;
  write_journal(dir.path());
  auto path = dir.path().string();
  {
    journal_store::options opts;
    opts.dir = dir.path();
    auto journal = journal_store::open(opts);
    REQUIRE(journal);
    std::vector<proto::Record> more{calls_refused(8, "rank 1 called another one"), command_ended(2, 1, "copy_in"),
                                    command_ended(2, 1, "copy_out", "no such address"),
                                    communicator_aborted(8, "no device is left")};
    REQUIRE(!(*journal)->append(more));
  }
  auto failed = run({path, "--relative", "--outcome", "failed"});
  CHECK(lines(failed.out) == 5); // of the operation two
  for (auto part : {"operation 2 failed", "refused its ranks' calls: rank 1 called another one", "no such address",
                    "communicator 8 aborted: no device is left"})
    CHECK_MESSAGE(contains(failed.out, part), failed.out);
  CHECK(lines(run({path, "--relative", "--outcome", "failed", "--communicator", "8"}).out) == 2);
  CHECK(lines(run({path, "--relative", "--outcome", "success"}).out) == 8); // of the operation seven
  CHECK(lines(run({path, "--relative", "--outcome", "in_progress"}).out) == 1);
}

TEST_CASE("log command: shows the ranks' part of an operation's time, for its final attempt") {
  temporary_directory dir;
  journal_store::options opts;
  opts.dir = dir.path();
  auto journal = journal_store::open(opts);
  REQUIRE(journal);
  auto again = operation_started(7, 1, 2, 8);
  auto first = rank_ended(7, 1, 0, 1, 20), last = rank_ended(7, 1, 1, 2, 31);
  for (auto* x : {&first, &last})
    x->mutable_rank_ended()->set_epoch(2);
  auto end = operation_ended(7, 1, gpu_sim::SUCCESS, 40);
  std::vector<proto::Record> records{operation_enqueued(7, 1),
                                     operation_started(7, 1),
                                     rank_ended(7, 1, 0, 1, 6),
                                     again,
                                     rank_ended(7, 1, 2, 3, 9),
                                     first,
                                     last,
                                     end};
  REQUIRE(!(*journal)->append(records));
  auto shown = run({dir.path().string(), "--kind", "operation", "--last", "1"});
  CHECK_MESSAGE(contains(shown.out, ", of that its ranks took 12.2 ms"), shown.out); // from 18.75 to 31 ms
}

TEST_CASE("log command: reads the journal of a running or killed process") {
  temporary_directory dir;
  child_process writer{{RINGMASTER_JOURNAL_WRITER, dir.path().string(), "2"}};
  while (writer.read_line() != "14") {
  }
  CHECK(lines(run({dir.path().string(), "--relative"}).out) == 14);
  writer.kill();
  CHECK(lines(run({dir.path().string(), "--relative"}).out) == 14);
}

TEST_CASE("log command: writes a trace") {
  temporary_directory dir;
  write_journal(dir.path() / "journal");
  auto file = (dir.path() / "trace.json").string();
  auto result = run({(dir.path() / "journal").string(), "--trace", file, "--kind", "rank"});
  CHECK(result.code == 0);
  CHECK(contains(result.out, "Wrote 4 slices and 0 events of 4 records to " + file));
  CHECK(contains(content_of(file), "\"all_reduce 1\""));
  auto journal = (dir.path() / "journal").string();
  auto whole = run({journal, "--trace", file});
  CHECK(!contains(whole.out, "Left out"));
  auto many = (dir.path() / "many").string();
  write_journal(many, 200);
  auto limited = run({many, "--trace", file, "--trace-limit", "64K"});
  CHECK(limited.code == 0);
  CHECK(contains(limited.out, "Left out "));
  CHECK(contains(limited.out, "with them the trace would exceed --trace-limit"));
  CHECK(content_of(file).size() <= 65536);
  CHECK(content_of(file).size() > 32768);
  CHECK(contains(content_of(file), "device 0x3 died")); // the latest are there
  CHECK(contains(run({journal, "--trace-limit", "64K"}).err, "--trace-limit is the maximum size of a --trace"));
  for (auto* small : {"0", "10", "63K"}) {
    auto refused = run({journal, "--trace", file, "--trace-limit", small});
    CHECK(refused.code == 2);
    CHECK(contains(refused.err, fmt::format("--trace-limit: \"{}\" is not at least 64 KiB", small)));
  }
  auto nowhere = run({(dir.path() / "journal").string(), "--trace", (dir.path() / "no" / "trace").string()});
  CHECK(nowhere.code == 1);
  CHECK(contains(nowhere.err, "No such file"));
}

TEST_CASE("log command: wrong usage names the option, the value and what is allowed") {
  std::vector<std::pair<std::vector<std::string>, std::string>> all{
    {{}, "directory is missing"},
    {{"a", "b"}, "'a' and 'b'"},
    {{"a", "--colour"}, "there is no option --colour; see"},
    {{"a", "--relativ"}, "there is no option --relativ; did you mean --relative?"},
    {{"a", "--last"}, "--last needs a value"},
    {{"a", "--last", "0"}, "--last: \"0\" is not an integer from 1, such as 3 or 0x3"},
    {{"a", "--last", "-3"}, "--last: \"-3\" is not"},
    {{"a", "--device", "0x"}, "--device: \"0x\" is not"},
    {{"a", "--device", "99999999999999999999"}, "--device: \"99999999999999999999\" is not"},
    {{"a", "--communicator", "7b"}, "--communicator: \"7b\" is not"},
    {{"a", "--kind", "weather"}, "--kind: \"weather\" is none of coordinator, node"},
    {{"a", "--outcome", "fine"}, "--outcome: \"fine\" is none of success, failed, in_progress"},
    {{"a", "--trace="}, "--trace: it is empty"},
    {{"a", "--trace", "f", "--follow"}, "does not go with --follow"},
    {{"a", "--json", "--relative"}, "does not go with --json"},
    {{"a", "--samples", "--kind", "device"}, "does not go with another --kind than training"},
    {{"a", "--samples", "--device", "1"}, "does not go with --device"},
    {{"a", "--samples", "--outcome", "failed"}, "does not go with --outcome"},
  };
  for (auto& [args, sentence] : all) {
    auto result = run(args);
    CHECK(result.code == 2);
    CHECK_MESSAGE(contains(result.err, sentence), result.err);
    CHECK(result.out.empty());
    CHECK(lines(result.err) == 1);
  }
}

TEST_CASE("log command: a missing journal is an error") {
  temporary_directory dir;
  for (auto path : {dir.path(), dir.path() / "nowhere"}) {
    auto result = run({path.string()});
    CHECK(result.code == 1);
    CHECK(contains(result.err, "there is no journal in '" + path.string() + "'"));
  }
  CHECK(std::filesystem::is_empty(dir.path()));
}

TEST_CASE("log command: explains itself") {
  auto result = run({"--help"});
  CHECK(result.code == 0);
  for (auto option : {"--communicator", "--device", "--kind", "--outcome", "--last", "--json", "--trace", "--follow"})
    CHECK(contains(result.out, option));
}
