// Each form of evidence as real jobs leave it.
#include "diagnosis/findings/diagnosis.hpp"
#include "diagnosis/readers/file_evidence.hpp"
#include "messages/errc.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace ringmaster::test {

namespace {

using namespace diagnosis;

job_records job_of(const std::vector<std::pair<std::string, std::string>>& files) {
  std::vector<file_evidence> all;
  for (auto& [name, text] : files) {
    auto read = read_evidence(name, text);
    REQUIRE_MESSAGE(read, render(read.error()));
    all.push_back(std::move(*read));
  }
  auto job = assemble(std::move(all));
  REQUIRE_MESSAGE(job, render(job.error()));
  return std::move(*job);
}

/// One rank's dump in the JSON form; `entries`: (sequence, name, elements, state).
std::string json_dump(const std::vector<std::tuple<int, std::string, int, std::string>>& entries, int first_record = 0,
                      const std::string& ranks = "[0, 1, 2, 3]") {
  std::string list;
  for (auto& [sequence, name, elements, state] : entries)
    list += fmt::format(
      R"({}{{"record_id": {}, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": {},
      "p2p_seq_id": 0, "op_id": 1, "profiling_name": "nccl:{}", "time_created_ns": {}, "input_sizes": [[{}]],
      "input_dtypes": ["Float"], "output_sizes": [[{}]], "output_dtypes": ["Float"], "state": "{}",
      "time_discovered_started_ns": {}, "time_discovered_completed_ns": 0, "retired": false, "timeout_ms": 600000,
      "is_p2p": false}})",
      list.empty() ? "" : ",", first_record++, sequence, name, 1'000'000'000ll * sequence, elements, elements, state,
      state == "scheduled" ? 0 : 5);
  return fmt::format(R"({{"version": "2.5", "pg_config": {{"0": {{"name": "0", "desc": "default_pg", "ranks": "{}"}}}},
    "pg_status": {{"0": {{"last_enqueued_collective": "{}", "last_started_collective": "1",
    "last_completed_collective": "1"}}}}, "entries": [{}]}})",
                     ranks, std::get<0>(entries.back()), list);
}

std::string answer(const job_records& job) {
  return sentence_of(job, diagnose(job).root);
}

constexpr std::string_view py_spy = R"(Process 4711: /usr/bin/python3 -u train.py --config big.yaml
Python v3.10.12 (/usr/bin/python3.10)

Thread 4711 (idle): "MainThread"
    wait (threading.py:320)
    get (queue.py:171)
    _next_data (torch/utils/data/dataloader.py:1328)
    __next__ (torch/utils/data/dataloader.py:630)
    train_one_epoch (train.py:122)
    <module> (train.py:300)
Thread 4802 (idle): "pt_autograd_0"
)";

} // namespace

TEST_CASE("evidence: JSON dumps of any name, with a rank whose dump is missing") {
  const std::string arrived = json_dump({{1, "all_reduce", 8, "completed"}, {2, "all_reduce", 8, "started"}});
  auto job = job_of({{"hostb-dump-0.json", arrived}, {"hosta-dump-1.json", arrived}, {"hostc-dump-3.json", arrived}});
  auto found = diagnose(job);
  CHECK(found.root.kind == fault_kind::died);
  CHECK(found.root.ranks == std::vector<uint32_t>{2});
  CHECK(found.root.sure == certainty::likely); // a missing dump is no proof
  CHECK(found.doubts.size() == 2);
}

TEST_CASE("evidence: rings that wrapped at different calls are compared where they overlap") {
  auto job = job_of({{"rank_0", json_dump({{7, "all_reduce", 8, "completed"}, {8, "all_reduce", 8, "started"}}, 6)},
                     {"rank_1", json_dump({{8, "all_reduce", 8, "started"}}, 7)},
                     {"rank_2", json_dump({{5, "all_gather", 4, "completed"}, {7, "all_reduce", 8, "completed"}}, 3)},
                     {"rank_3", json_dump({{8, "all_reduce", 8, "started"}, {9, "all_reduce", 8, "scheduled"}}, 7)}});
  auto found = diagnose(job);
  CHECK(found.root.kind == fault_kind::never_called);
  CHECK(found.root.ranks == std::vector<uint32_t>{2});
  CHECK(found.root.awaited.sequence == 8);
}

TEST_CASE("evidence: two against two is ambiguous, and says so") {
  const auto one = json_dump({{1, "all_reduce", 8, "started"}}), other = json_dump({{1, "all_reduce", 16, "started"}});
  auto job = job_of({{"rank_0", one}, {"rank_1", one}, {"rank_2", other}, {"rank_3", other}});
  auto found = diagnose(job);
  CHECK(found.root.sure == certainty::ambiguous);
  CHECK(found.root.ranks.size() == 4);
  CHECK(answer(job).starts_with("Ambiguous: "));
}

TEST_CASE("evidence: all-to-all with other sizes, and shapes with equal elements, are no mismatch") {
  auto job = job_of({{"rank_0", json_dump({{1, "all_to_all", 8, "completed"}}, 0, "[0, 1]")},
                     {"rank_1", json_dump({{1, "all_to_all", 24, "completed"}}, 0, "[0, 1]")}});
  CHECK(diagnose(job).root.kind == fault_kind::none);
}

TEST_CASE("evidence: a dump whose rank is not clear is an error that says what to do") {
  auto read = read_evidence("dump.json", json_dump({{1, "all_reduce", 8, "started"}}));
  REQUIRE(read);
  std::vector<file_evidence> all;
  all.push_back(std::move(*read));
  auto job = assemble(std::move(all));
  REQUIRE(!job);
  CHECK(render(job.error()).find("dump.json: which rank is this dump of?") == 0);
}

TEST_CASE("evidence: wrong JSON names line, entry and field") {
  auto cut = read_evidence("rank_0", "{\"entries\": [\n  {\"state\": ");
  REQUIRE(!cut);
  CHECK(render(cut.error()).find("rank_0: line 2, column") == 0);
  auto wrong = read_evidence("rank_0",
                             R"({"entries": [{"profiling_name": "nccl:barrier", "collective_seq_id": "x"}]})");
  REQUIRE(!wrong);
  CHECK(render(wrong.error()) == R"(rank_0: "entries", entry 0: "collective_seq_id" must be a number from 0)");
  auto other = read_evidence("x.json", R"({"a": 1})");
  REQUIRE(!other);
  CHECK(render(other.error()).find("this is no Flight Recorder dump") != std::string::npos);
}

TEST_CASE("evidence: py-spy dumps find the data loader, by the process id of NCCL's log") {
  std::string log;
  for (int rank = 0; rank < 4; ++rank)
    for (auto end : {"Init START", "Init COMPLETE"})
      log += fmt::format(
        "[rank{0}]: node{1}:{2}:9{0} [{0}] NCCL INFO ncclCommInitRankConfig comm 0x55{0} rank {0} nranks 4 "
        "cudaDev {0} nvmlDev {0} busId 1b000 commId 0x9d3f - {3}\n",
        rank, rank / 2, rank == 2 ? 4711 : 100 + rank, end);
  const auto arrived = json_dump({{1, "all_reduce", 8, "completed"}, {2, "all_reduce", 8, "started"}});
  auto job = job_of({{"0", arrived},
                     {"1", arrived},
                     {"2", json_dump({{1, "all_reduce", 8, "completed"}})},
                     {"3", arrived},
                     {"stacks.txt", std::string{py_spy}},
                     {"train.log", log}});
  auto found = diagnose(job);
  CHECK(found.root.kind == fault_kind::in_data_loader);
  CHECK(found.root.ranks == std::vector<uint32_t>{2});
  CHECK(answer(job).find("Rank 2 on node1 is in the data loader and has not called all_reduce 2 of") == 0);
  CHECK(answer(job).find("_next_data (torch/utils/data/dataloader.py:1328)") != std::string::npos);
}

TEST_CASE("evidence: NCCL's log alone finds the rank that did not call, and another root") {
  auto line = [](int rank, int count, std::string_view name, int root) {
    return fmt::format(
      "node:{}:7 [0] NCCL INFO {}: opCount {:x} sendbuff 0x7f recvbuff 0x7f count 1024 datatype 7 op 0 "
      "root {} comm 0x55{} [nranks=4] stream 0x1\n",
      10 + rank, name, count, root, rank);
  };
  auto start = [](int rank) {
    return fmt::format(
      "node:{}:7 [0] NCCL INFO ncclCommInitRank comm 0x55{} rank {} nranks 4 cudaDev 0 busId 1000 commId "
      "0x1 - Init COMPLETE\n",
      10 + rank, rank, rank);
  };
  std::string lacking, roots;
  for (int rank = 0; rank < 4; ++rank) {
    lacking += start(rank) + line(rank, 0, "AllReduce", 0) + (rank == 1 ? "" : line(rank, 1, "AllGather", 0));
    roots += start(rank) + line(rank, 0, "Broadcast", rank == 3 ? 2 : 0);
  }
  auto found = diagnose(job_of({{"a.log", lacking}}));
  CHECK(found.root.kind == fault_kind::never_called);
  CHECK(found.root.ranks == std::vector<uint32_t>{1});
  found = diagnose(job_of({{"b.log", roots}}));
  CHECK(found.root.kind == fault_kind::other_root);
  CHECK(found.root.ranks == std::vector<uint32_t>{3});
}

TEST_CASE("evidence: watchdog lines alone find the rank that is behind") {
  std::string log;
  for (int rank : {0, 1, 3})
    log += fmt::format(
      "[rank{0}]:[E321 02:07:08.4 ProcessGroupNCCL.cpp:607] [Rank {0}] Watchdog caught collective operation "
      "timeout: WorkNCCL(SeqNum=17, OpType=ALLREDUCE, NumelIn=64, NumelOut=64, Timeout(ms)=600000) ran for "
      "600060 milliseconds before timing out.\n",
      rank);
  log += "[rank2]:[E321 02:07:09.1 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank 2] Exception (either "
         "an "
         "error or timeout) detected by watchdog at work: 16, last enqueued NCCL work: 16, last completed NCCL work: "
         "16.\n";
  auto found = diagnose(job_of({{"train.log", log}}));
  CHECK(found.root.ranks == std::vector<uint32_t>{2});
  CHECK(found.root.awaited.sequence == 17);
}

TEST_CASE("evidence: a launcher's line that a process was killed is a proof of its death") {
  const auto arrived = json_dump({{1, "all_reduce", 8, "completed"}, {2, "all_reduce", 8, "started"}});
  auto job = job_of(
    {{"0", arrived}, {"1", arrived}, {"3", arrived}, {"slurm.out", "srun: error: node3: task 2: Killed\n"}});
  auto found = diagnose(job);
  CHECK(found.root.kind == fault_kind::died);
  CHECK(found.root.sure == certainty::certain);
  CHECK(answer(job).find("srun: error: node3: task 2: Killed (slurm.out, line 1)") != std::string::npos);
}

TEST_CASE("evidence: RAS status as text names the rank that launched fewer operations") {
  const std::string text
    = "NCCL version 2.26.2 compiled with CUDA 12.4\nCUDA runtime version 12040, driver version 12040\n\n"
      "Job summary\n===========\n\n\nCommunicators... (0.01s)\n=============\n\n"
      "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
      "    0         1         1         8         8         8   RUNNING  MISMATCH\n\n"
      "Errors\n======\n\nWarnings\n========\n\n#0-0 (3f5a1b2c3d4e5f60) MISMATCH\n"
      "  Communicator ranks have different AllReduce operation counts\n"
      "  7 ranks have launched up to operation 18\n"
      "  Rank 5 has launched up to operation 17 -- GPU 5 managed by process 815 on node 10.0.0.7\n\n";
  auto job = job_of({{"ras.txt", text}});
  auto found = diagnose(job);
  CHECK(found.root.ranks == std::vector<uint32_t>{5});
  CHECK(found.root.kind == fault_kind::never_called);
  CHECK(found.root.waiting == 7);
}

TEST_CASE("evidence: RAS status as JSON names a dead process") {
  std::string ranks;
  for (int rank : {0, 1, 3})
    ranks += fmt::format(R"({}{{"rank": {}, "host": "10.0.0.1", "pid": {}, "cuda_dev": 0, "nvml_dev": 0, "status":
      {{"init_state": 0, "async_error": 0, "finalize_called": false, "destroy_flag": false, "abort_flag": false}},
      "collective_counts": {{"Broadcast": 1, "AllReduce": {}}}}})",
                         ranks.empty() ? "" : ",", rank, 10 + rank, rank == 3 ? 6 : 7);
  const auto text = fmt::format(
    R"({{"nccl_version": "2.28.3", "communicators_count": 1, "communicators": [{{"hash": "0x1",
      "secondary_hash": "0x2:0x3", "size": 4, "ranks_count": 3, "missing_ranks_count": 1, "ranks": [{}],
      "missing_ranks": [{{"rank": 2, "host": "10.0.0.1", "pid": 12, "cuda_dev": 0, "nvml_dev": 0,
      "status": {{"unresponsive": true, "considered_dead": true}}}}]}}]}})",
    ranks);
  auto job = job_of({{"ras.json", text}});
  auto found = diagnose(job);
  CHECK(found.ranks_waiting == 2);
  CHECK(job.find(2)->notes.front().what == rank_note::kind::died);
}

TEST_CASE("evidence: files without evidence are left out with a remark; none at all is an error") {
  auto read = read_evidence("notes.txt", "hello\n");
  REQUIRE(read);
  CHECK(read->form == evidence_form::unknown);
  std::vector<file_evidence> all;
  all.push_back(std::move(*read));
  auto job = assemble(std::move(all));
  REQUIRE(!job);
  CHECK(code_of(job.error()) == errc::corrupt);
}

} // namespace ringmaster::test
