// The cause of a hang is found: every fault in every layout, through the writer of dumps and their reader.
#include "diagnosis/findings/diagnosis.hpp"
#include "diagnosis/readers/file_evidence.hpp"
#include "diagnosis/writers/flight_recorder_writer.hpp"
#include "messages/errc.hpp"
#include "tests/diagnosis/hung_jobs/hung_job.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::test {

namespace {

using namespace diagnosis;

constexpr uint32_t seeds = 6;

/// The job as it is read back from its dumps and texts.
job_records read_back(const hung_job& job) {
  std::vector<file_evidence> all;
  for (auto& rank : job.records.ranks) {
    auto read = read_evidence(dump_name(rank.rank), flight_recorder_dump(job.records, rank));
    REQUIRE_MESSAGE(read, render(read.error()));
    all.push_back(std::move(*read));
  }
  for (auto& text : job.texts) {
    auto read = read_evidence("worker.log", text);
    REQUIRE_MESSAGE(read, render(read.error()));
    all.push_back(std::move(*read));
  }
  auto result = assemble(std::move(all));
  REQUIRE_MESSAGE(result, render(result.error()));
  return std::move(*result);
}

} // namespace

TEST_CASE("diagnosis: a job without a fault has no cause of a hang") {
  for (auto layout : layout_names()) {
    auto job = hang(programs_of(layout), job_fault::none, 1);
    REQUIRE(job);
    auto records = read_back(*job);
    auto found = diagnose(records);
    CHECK_MESSAGE(found.root.kind == fault_kind::none, layout << ": " << sentence_of(records, found.root));
    CHECK(found.ranks_waiting == 0);
  }
}

TEST_CASE("diagnosis: finds the rank and the kind of every fault in every layout") {
  size_t cases = 0, right = 0, accused = 0;
  for (auto layout : layout_names()) {
    auto programs = programs_of(layout);
    for (auto fault : job_faults())
      for (uint32_t seed = 1; seed <= seeds; ++seed) {
        auto job = hang(programs, fault, seed);
        if (!job)
          continue;
        auto records = read_back(*job);
        auto found = diagnose(records);
        ++cases;
        const bool rank_right = found.root.ranks == std::vector{job->culprit};
        const bool kind_right = found.root.kind == job->truth;
        right += rank_right && kind_right;
        accused += !rank_right && found.root.sure != certainty::ambiguous;
        if (!rank_right || !kind_right)
          MESSAGE(layout << ", " << job->story << ": " << name_of(found.root.kind) << ", "
                         << sentence_of(records, found.root));
      }
  }
  MESSAGE(cases << " cases, " << right << " right, " << accused << " with an innocent rank first");
  CHECK(cases >= 12 * 4 * (seeds - 1));
  CHECK(right * 100 >= cases * 95);
  CHECK(accused == 0);
}

} // namespace ringmaster::test
