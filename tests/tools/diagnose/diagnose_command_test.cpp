#include "diagnosis/writers/flight_recorder_writer.hpp"
#include "messages/errc.hpp"
#include "runtime/journal/journal_store.hpp"
#include "runtime/text/json_field.hpp"
#include "tests/diagnosis/hung_jobs/hung_job.hpp"
#include "tests/support/captured_command.hpp"
#include "tests/support/file_content.hpp"
#include "tests/support/records.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tools/diagnose/diagnose_command.hpp"
#include "tools/options/commands.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace ringmaster::test {

namespace {

/// Dumps of a job in which one rank stopped.
hung_job leave_dumps(const std::filesystem::path& dir) {
  auto job = *hang(programs_of("ddp"), job_fault::stops, 1);
  for (auto& rank : job.records.ranks)
    std::ofstream{dir / diagnosis::dump_name(rank.rank), std::ios::binary}
      << diagnosis::flight_recorder_dump(job.records, rank);
  return job;
}

proto::Record communicator_created(uint64_t id) {
  auto record = record_at(0);
  auto& x = *record.mutable_communicator_created();
  x.set_comm_id(id);
  x.set_name("job");
  for (uint64_t device = 1; device <= 4; ++device)
    x.add_device_ids(device);
  return record;
}

/// A journal in which rank 2 never finishes its part of operation 2.
void leave_journal(const std::filesystem::path& dir) {
  journal_store::options opts;
  opts.dir = dir;
  auto journal = journal_store::open(opts);
  REQUIRE(journal);
  std::vector records{communicator_created(7)};
  for (auto& record : whole_operation(7, 1))
    records.push_back(record);
  records.push_back(operation_enqueued(7, 2, 10));
  records.push_back(operation_started(7, 2, 1, 11));
  for (uint32_t rank : {0, 1, 3})
    records.push_back(rank_ended(7, 2, rank, rank + 1, 12));
  REQUIRE(!(*journal)->append(records));
}

} // namespace

TEST_CASE("diagnose: a sentence, the chain, the calls side by side and what to check; a picture") {
  temporary_directory dir;
  auto job = leave_dumps(dir.path());
  temporary_directory out;
  const auto svg = (out.path() / "job.svg").string();
  auto result = run_command(diagnose_command(), {dir.path().string(), "--svg", svg});
  CHECK(result.err == "");
  CHECK(result.code == exit_ok);
  CHECK(result.out.starts_with("Rank " + std::to_string(job.culprit) + " on host"));
  CHECK(result.out.find("Who waits for whom") != std::string::npos);
  CHECK(result.out.find("  * rank " + std::to_string(job.culprit)) != std::string::npos);
  CHECK(result.out.find("What to check next") != std::string::npos);
  CHECK(content_of(svg).find("</svg>") != std::string::npos);
}

TEST_CASE("diagnose: one JSON object") {
  temporary_directory dir;
  auto job = leave_dumps(dir.path());
  auto result = run_command(diagnose_command(), {dir.path().string(), "--json"});
  auto document = parse_json(result.out);
  REQUIRE_MESSAGE(document, render(document.error()));
  CHECK((*document)["kind"] == "never_called");
  CHECK((*document)["certainty"] == "certain");
  CHECK((*document)["ranks"] == json_value::array({job.culprit}));
  CHECK((*document)["ranks_waiting"] == 7);
}

TEST_CASE("diagnose: a dump that is cut off is left out, and the answer says so") {
  temporary_directory dir;
  auto job = leave_dumps(dir.path());
  const auto other = dir.path() / diagnosis::dump_name(job.culprit == 0 ? 1 : 0);
  std::filesystem::resize_file(other, 1000);
  auto result = run_command(diagnose_command(), {dir.path().string(), "--json"});
  auto document = parse_json(result.out);
  REQUIRE(document);
  CHECK((*document)["ranks"] == json_value::array({job.culprit}));
  CHECK(result.out.find("left out: " + other.string() + ": byte ") != std::string::npos);
}

TEST_CASE("diagnose: exit statuses and errors") {
  temporary_directory dir;
  CHECK(run_command(diagnose_command(), {}).code == exit_usage);
  auto missing = run_command(diagnose_command(), {(dir.path() / "none").string()});
  CHECK(missing.code == exit_failed);
  CHECK(missing.err.find("No such file") != std::string::npos);
  std::ofstream{dir.path() / "rank_0"} << "\x80\x02"
                                       << "cos\nsystem\n.";
  auto hostile = run_command(diagnose_command(), {dir.path().string()});
  CHECK(hostile.code == exit_failed);
  CHECK(hostile.err.find("byte 2: the opcode GLOBAL") != std::string::npos);
}

TEST_CASE("diagnose: a journal, and the dumps that the log writes from it, give the same answer") {
  temporary_directory dir;
  const auto journal = (dir.path() / "journal").string(), dumps = (dir.path() / "dumps").string();
  leave_journal(journal);
  auto direct = run_command(diagnose_command(), {journal, "--json"});
  CHECK(direct.err == "");
  auto document = parse_json(direct.out);
  REQUIRE_MESSAGE(document, render(document.error()));
  CHECK((*document)["kind"] == "hung_in_kernel");
  CHECK((*document)["ranks"] == json_value::array({2}));
  auto written = run_command(log_command(), {journal, "--flight-recorder", dumps});
  CHECK(written.err == "");
  CHECK(written.out.find("Wrote 4 dumps to ") == 0);
  auto read = run_command(diagnose_command(), {dumps, "--json"});
  auto again = parse_json(read.out);
  REQUIRE(again);
  for (auto key : {"kind", "ranks", "sentence", "ranks_waiting"})
    CHECK((*again)[key] == (*document)[key]);
  auto beside = run_command(diagnose_command(), {journal, dumps});
  CHECK(beside.code == exit_usage);
}

} // namespace ringmaster::test
