// Faults of our own runtime, as its journal has them.
#include "diagnosis/findings/diagnosis.hpp"
#include "diagnosis/readers/file_evidence.hpp"
#include "diagnosis/readers/journal_records.hpp"
#include "diagnosis/writers/flight_recorder_writer.hpp"
#include "tests/support/simulated_client.hpp"
#include "tests/support/trials/all_reduce_trial.hpp"

namespace ringmaster::test {

namespace {

using namespace diagnosis;

/// A cluster on which two all-reduces of four ranks succeed and rank 2 has a fault in the third.
std::vector<proto::Record> records_until_loss(proto::FaultRequest::Kind kind, uint64_t seed) {
  auto options = with_devices(4, seed);
  options.journaled = true;
  simulated_cluster cluster{options};
  all_reduce_trial trial{cluster, {.algorithm = "ring", .ranks = 4}};
  for (int i = 0; i < 2; ++i) {
    REQUIRE(trial.launch() == "");
    cluster.wait(trial.comm.commid());
  }
  cluster.inject(trial.device(2), fault(kind, 1, std::chrono::seconds{30}));
  REQUIRE(trial.launch() == "");
  cluster.wait(trial.comm.commid());
  auto records = cluster.history();
  auto lost = std::ranges::find_if(records, [](auto& x) { return x.has_device_died(); });
  REQUIRE(lost != records.end());
  records.erase(lost + 1, records.end()); // as if the whole job had stopped there
  return records;
}

} // namespace

TEST_CASE("diagnosis: a device of our own runtime that hangs, or is killed, is the cause") {
  for (uint64_t seed = 1; seed <= 5; ++seed)
    for (auto [kind, expected] : {std::pair{proto::FaultRequest::HANG, fault_kind::hung_in_kernel},
                                  std::pair{proto::FaultRequest::KILL, fault_kind::died}}) {
      auto job = journal_job(records_until_loss(kind, seed));
      auto found = diagnose(job);
      CAPTURE(sentence_of(job, found.root));
      CHECK(found.root.kind == expected);
      CHECK(found.root.ranks == std::vector<uint32_t>{2});
      CHECK(found.root.awaited.sequence == 3);
    }
}

TEST_CASE("diagnosis: calls of a journal are the same when they are read back from dumps") {
  auto job = journal_job(records_until_loss(proto::FaultRequest::HANG, 1));
  std::vector<file_evidence> all;
  for (auto& rank : job.ranks) {
    auto evidence = read_evidence(dump_name(rank.rank), flight_recorder_dump(job, rank));
    REQUIRE(evidence);
    all.push_back(std::move(*evidence));
  }
  auto again = assemble(std::move(all));
  REQUIRE(again);
  REQUIRE(again->ranks.size() == 4);
  for (uint32_t rank = 0; rank < 4; ++rank) {
    auto &before = job.ranks[rank].calls, &after = again->ranks[rank].calls;
    REQUIRE(before.size() == after.size());
    for (size_t i = 0; i < before.size(); ++i) {
      CHECK(before[i].sequence == after[i].sequence);
      CHECK(before[i].state == after[i].state);
      CHECK(before[i].completed_ns == after[i].completed_ns);
      CHECK(job.name_of_call(before[i]) == again->name_of_call(after[i]));
    }
  }
}

} // namespace ringmaster::test
