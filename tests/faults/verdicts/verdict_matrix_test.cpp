// Twelve faults, each in four collectives on three routes: every survivor names the right culprit and kind, in the same
// words, as do the journal and the log of each process.
#include "runtime/health/verdict_text.hpp"
#include "tests/support/actor_state.hpp"
#include "tests/support/nodes/calling_ranks.hpp"
#include "tests/support/text_search.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <deque>
#include <mutex>
#include <string>
#include <vector>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

using proto::Verdict;

constexpr uint32_t ranks_of_cell = 4;
constexpr uint32_t victim = 2;

enum class fault_in_cell {
  device_killed,
  process_killed,
  process_paused,
  device_hung,
  nodes_cut_off,      ///< The victim's node and another one have no connection to each other.
  coordinator_silent, ///< Nothing passes between the victim's node and the coordinator, and no connection ends.
  coordinator_cut,    ///< The same connection breaks.
  device_slow,
  other_collective,
  other_count,
  never_called,
  ended_before_call
};

enum class route_in_cell { shared_memory, mapped, messages };

/// What the log of all processes says, while it exists.
class captured_log {
public:
  captured_log() : sink_(std::make_shared<line_sink>()), before_(spdlog::default_logger()) {
    auto logger = std::make_shared<spdlog::logger>("captured", sink_);
    logger->set_level(spdlog::level::warn);
    spdlog::set_default_logger(std::move(logger));
  }
  ~captured_log() { spdlog::set_default_logger(before_); }
  captured_log(const captured_log&) = delete;
  captured_log& operator=(const captured_log&) = delete;

  long count(const std::string& line) const { return std::ranges::count(sink_->lines, line); }

private:
  struct line_sink : spdlog::sinks::base_sink<std::mutex> {
    std::vector<std::string> lines;
    void sink_it_(const spdlog::details::log_msg& x) override {
      lines.emplace_back(x.payload.begin(), x.payload.end());
    }
    void flush_() override {}
  };

  std::shared_ptr<line_sink> sink_;
  std::shared_ptr<spdlog::logger> before_;
};

const char* algorithm_for(proto::CollectiveKind kind, route_in_cell route) {
  if (route == route_in_cell::shared_memory)
    return "auto";
  switch (kind) {
    case proto::ALL_REDUCE: return "ring";
    case proto::BROADCAST: return "chain";
    case proto::ALL_TO_ALL: return "pairwise";
    default: return "direct";
  }
}

/// One cell: four ranks, each on a node of its own, which call one collective; a fault; and what is known of it after.
class matrix_cell {
public:
  matrix_cell(fault_in_cell what, proto::CollectiveKind kind, route_in_cell route)
    : fault_(what), kind_(kind), route_(route), cluster_(nodes_for(route)), comm_(cluster_.init(ranks_of_cell)),
      ranks_(cluster_, comm_) {
    collective_options how;
    how.kind = kind;
    how.algorithm = algorithm_for(kind, route);
    how.ranks = ranks_of_cell;
    if (kind == proto::SEND_RECV) { // from rank 0 to 3, and from rank 1 to the victim
      how.peer = 3;
      trials_.emplace_back(cluster_, how, comm_, 0);
      how.root = 1;
      how.peer = victim;
    }
    trials_.emplace_back(cluster_, how, comm_, kind == proto::SEND_RECV ? 8192 : 0);
    where_ = cluster_.host_index_of(device(victim)).value();
  }

  void run() {
    if (fault_ == fault_in_cell::device_slow)
      return run_slowly();
    for (uint32_t rank : {0u, 1u}) // so that the operation takes a while
      cluster_.inject(device(rank), fault(proto::FaultRequest::SLOW, std::nullopt, 30ms));
    if (fault_ == fault_in_cell::ended_before_call)
      cluster_.kill(where_);
    for (uint32_t rank = 0; rank < ranks_of_cell; ++rank)
      call(rank);
    cluster_.run_for(strikes_at_once() ? caf::timespan{1us} : caf::timespan{10ms});
    strike();
    cluster_.run_for(3s);
  }

  void check() {
    const auto survivors = nodes_that_survive();
    std::vector<Verdict> known;
    for (auto process : survivors) {
      const auto status = status_from(process);
      REQUIRE(status.verdicts_size() > 0);
      if (known.empty())
        known.assign(status.verdicts().begin(), status.verdicts().end());
      REQUIRE(status.verdicts_size() == static_cast<int>(known.size()));
      for (int i = 0; i < status.verdicts_size(); ++i)
        CHECK(status.verdicts(i).SerializeAsString() == known[static_cast<size_t>(i)].SerializeAsString());
    }
    REQUIRE(!known.empty());
    std::vector<std::string> journaled;
    for (auto& record : cluster_.history())
      if (record.has_verdict())
        journaled.push_back(record.verdict().SerializeAsString());
    REQUIRE(journaled.size() == known.size());
    std::string findings;
    for (size_t i = 0; i < known.size(); ++i) {
      auto& x = known[i];
      INFO(text_of(x));
      CHECK(x.kind() == expected_kind());
      CHECK(culprits_of(x) == expected_culprits());
      CHECK(x.culprits(0).device_id() == device(x.culprits(0).rank()));
      CHECK(x.culprits(0).node() == simulated_nodes::name_of(process_of(x.culprits(0).rank())));
      CHECK(x.culprits(0).pid() == process_of(x.culprits(0).rank()));
      CHECK(x.has_outcome());
      if (is_within_operation())
        CHECK(x.sequence() != 0);
      CHECK(journaled[i] == x.SerializeAsString());
      // The coordinator's process and each survivor's.
      CHECK(log_.count(fmt::format("communicator {}: {}", comm_.commid(), text_of(x)))
            == static_cast<long>(survivors.size() + 1));
      findings += finding_of(x) + '\n';
    }
    for (auto& [rank, its] : calls_) {
      if (rank == victim && survivors.size() < ranks_of_cell)
        continue;
      CAPTURE(rank);
      CHECK(its.test());
      if (its.test() && its.error())
        CHECK_MESSAGE(names_a_finding(render(its.error()), known), render(its.error()), " does not say: ", findings);
      else
        CHECK_FALSE(all_calls_fail());
    }
  }

private:
  static nodes_options nodes_for(route_in_cell route) {
    nodes_options result;
    result.devices = {1, 1, 1, 1};
    result.one_host = route != route_in_cell::messages;
    result.idle_interval = 300ms;
    return result;
  }

  uint64_t device(uint32_t rank) const { return comm_.devices(static_cast<int>(rank)).deviceid().value(); }
  size_t process_of(uint32_t rank) const { return processes_[rank]; }

  void call(uint32_t rank) {
    if (rank == victim && (fault_ == fault_in_cell::never_called || fault_ == fault_in_cell::ended_before_call))
      return;
    for (auto& trial : trials_) {
      auto part = trial.part_of(rank);
      if (!part)
        continue;
      if (rank == victim && fault_ == fault_in_cell::other_collective) {
        part->mutable_collective()->set_kind(proto::BARRIER);
        part->set_receives(false);
      }
      if (rank == victim && fault_ == fault_in_cell::other_count)
        part->mutable_collective()->set_count(part->collective().count() - 1);
      call_options how{part->collective().algorithm()};
      if (fault_ == fault_in_cell::never_called || fault_ == fault_in_cell::other_collective)
        how.timeout = 1s;
      calls_.emplace_back(rank, ranks_.call(rank, *part, how));
    }
  }

  void strike() {
    switch (fault_) {
      case fault_in_cell::device_killed: cluster_.kill_device(device(victim)); break;
      case fault_in_cell::process_killed: cluster_.kill(where_); break;
      case fault_in_cell::process_paused: cluster_.pause(where_); break;
      case fault_in_cell::device_hung: cluster_.fault_later(device(victim), fault(proto::FaultRequest::HANG)); break;
      case fault_in_cell::nodes_cut_off: cluster_.cut(where_, process_of(1)); break;
      case fault_in_cell::coordinator_silent: cluster_.stall(0, where_); break;
      case fault_in_cell::coordinator_cut: cluster_.cut(0, where_); break;
      default: break;
    }
  }

  /// All devices are slowed, the victim ten times as much.
  void run_slowly() {
    for (uint32_t rank = 0; rank < ranks_of_cell; ++rank)
      cluster_.inject(device(rank), fault(proto::FaultRequest::SLOW, std::nullopt, rank == victim ? 100ms : 10ms));
    for (const auto until = cluster_.now() + 5s; cluster_.now() < until;) {
      for (auto& trial : trials_)
        REQUIRE(trial.launch() == "");
      cluster_.wait(comm_.commid());
    }
  }

  Verdict::Kind expected_kind() const {
    switch (fault_) {
      case fault_in_cell::device_killed:
      case fault_in_cell::process_killed:
      case fault_in_cell::ended_before_call: return Verdict::CRASHED;
      case fault_in_cell::process_paused:
      case fault_in_cell::device_hung: return Verdict::HUNG;
      case fault_in_cell::nodes_cut_off:
      case fault_in_cell::coordinator_silent:
      case fault_in_cell::coordinator_cut: return Verdict::UNREACHABLE;
      case fault_in_cell::device_slow: return Verdict::SLOW;
      case fault_in_cell::other_collective:
      case fault_in_cell::other_count: return Verdict::CALLED_ELSE;
      case fault_in_cell::never_called: break;
    }
    return Verdict::NEVER_CALLED;
  }

  std::vector<uint32_t> expected_culprits() const {
    const bool are_two = fault_ == fault_in_cell::nodes_cut_off // or of two that differ none is in the majority
                         || (fault_ == fault_in_cell::other_count && kind_ == proto::SEND_RECV);
    return are_two ? std::vector<uint32_t>{1, victim} : std::vector{victim};
  }

  /// The fault comes while the operation runs.
  bool is_within_operation() const { return fault_ != fault_in_cell::ended_before_call; }

  /// In shared memory the operation goes on without a rank that has come to it: it must not come.
  bool strikes_at_once() const {
    const bool is_joint = route_ == route_in_cell::shared_memory // the only algorithm of a send and receive is
                          || (route_ == route_in_cell::mapped && kind_ == proto::SEND_RECV);
    return is_joint
           && (fault_ == fault_in_cell::process_paused || fault_ == fault_in_cell::device_hung
               || fault_ == fault_in_cell::coordinator_silent);
  }

  bool all_calls_fail() const {
    return kind_ != proto::SEND_RECV
           && (fault_ == fault_in_cell::other_collective || fault_ == fault_in_cell::other_count
               || fault_ == fault_in_cell::never_called);
  }

  static std::vector<uint32_t> culprits_of(const Verdict& x) {
    std::vector<uint32_t> result;
    for (auto& each : x.culprits())
      result.push_back(each.rank());
    return result;
  }

  static bool names_a_finding(const std::string& text, const std::vector<Verdict>& known) {
    return std::ranges::any_of(known, [&](auto& x) { return contains(text, finding_of(x)); });
  }

  /// The processes of ranks that are members after all.
  std::vector<size_t> nodes_that_survive() {
    gpu_sim::GetCommStatusRequest request;
    request.set_commid(comm_.commid());
    request.set_readonly(true);
    const auto status = cluster_.ask_coordinator<gpu_sim::GetCommStatusResponse>(request);
    std::vector<size_t> result;
    for (uint32_t rank = 0; rank < ranks_of_cell; ++rank)
      if (std::ranges::any_of(status.devices(), [&](auto& x) { return x.deviceid().value() == device(rank); }))
        result.push_back(process_of(rank));
    return result;
  }

  /// As the rank of this process sees it.
  gpu_sim::GetCommStatusResponse status_from(size_t process) {
    caf::scoped_actor self{cluster_.process(process).sys, true};
    gpu_sim::GetCommStatusRequest request;
    request.set_commid(comm_.commid());
    request.set_readonly(true);
    auto pending = self->request(state_of<node_state>(cluster_.node_of(process)).options.coordinator, caf::infinite,
                                 request);
    cluster_.run_until([&] { return !self->mailbox().empty(); });
    gpu_sim::GetCommStatusResponse result;
    pending.receive([&](gpu_sim::GetCommStatusResponse& x) { result = std::move(x); },
                    [&](const caf::error& problem) { FAIL("no answer: ", render(problem)); });
    return result;
  }

  captured_log log_;
  fault_in_cell fault_;
  proto::CollectiveKind kind_;
  route_in_cell route_;
  simulated_nodes cluster_;
  gpu_sim::CommInitResponse comm_;
  calling_ranks ranks_;
  std::vector<size_t> processes_ = [this] {
    std::vector<size_t> result;
    for (uint32_t rank = 0; rank < ranks_of_cell; ++rank)
      result.push_back(cluster_.host_index_of(device(rank)).value());
    return result;
  }();
  std::deque<collective_trial> trials_;
  std::vector<std::pair<uint32_t, work>> calls_;
  size_t where_ = 0; ///< The victim's process.
};

void try_everywhere(fault_in_cell what) {
  for (auto kind : {proto::ALL_REDUCE, proto::BROADCAST, proto::ALL_TO_ALL, proto::SEND_RECV})
    for (auto route : {route_in_cell::shared_memory, route_in_cell::mapped, route_in_cell::messages}) {
      const auto name = proto::CollectiveKind_Name(kind);
      const auto by = static_cast<int>(route);
      CAPTURE(name);
      CAPTURE(by);
      matrix_cell cell{what, kind, route};
      cell.run();
      cell.check();
    }
}

} // namespace

TEST_CASE("verdicts: a device that is killed") {
  try_everywhere(fault_in_cell::device_killed);
}

TEST_CASE("verdicts: a process that is killed") {
  try_everywhere(fault_in_cell::process_killed);
}

TEST_CASE("verdicts: a process that is paused") {
  try_everywhere(fault_in_cell::process_paused);
}

TEST_CASE("verdicts: a device that hangs") {
  try_everywhere(fault_in_cell::device_hung);
}

TEST_CASE("verdicts: two nodes whose connection to each other is cut") {
  try_everywhere(fault_in_cell::nodes_cut_off);
}

TEST_CASE("verdicts: a node whose way to the coordinator is silent") {
  try_everywhere(fault_in_cell::coordinator_silent);
}

TEST_CASE("verdicts: a node whose connection to the coordinator breaks") {
  try_everywhere(fault_in_cell::coordinator_cut);
}

TEST_CASE("verdicts: a device ten times slower than the others") {
  try_everywhere(fault_in_cell::device_slow);
}

TEST_CASE("verdicts: a rank that called another collective") {
  try_everywhere(fault_in_cell::other_collective);
}

TEST_CASE("verdicts: a rank that called with another count") {
  try_everywhere(fault_in_cell::other_count);
}

TEST_CASE("verdicts: a rank that never called") {
  try_everywhere(fault_in_cell::never_called);
}

TEST_CASE("verdicts: a rank whose process ended before it called") {
  try_everywhere(fault_in_cell::ended_before_call);
}
