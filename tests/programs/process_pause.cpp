// A program for caf-run: while operations fly, one process of the cluster is stopped, and goes on after a while.
// Nothing may be lost: every operation is right over all ranks, in the first epoch, and every process is there at the
// end.
//   process_pause node|coordinator|client|connections|hosts-cut|hosts-away|none SECONDS
// With `none` it reports its start, and the process that started it pauses others.
#include "tests/programs/cluster_program.hpp"

#include <chrono>
#include <csignal>
#include <fmt/format.h>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

constexpr uint64_t count = 1 << 16; // 512 KiB a rank
constexpr double right = 255;       // 2^0 + ... + 2^7
using steady = std::chrono::steady_clock;

caf::expected<pid_t> process_of(client& host, const std::string& who) {
  if (who == "client")
    return ::getpid();
  if (who == "node") {
    auto info = host.devices();
    if (!info)
      return std::move(info.error());
    return static_cast<pid_t>(info->nodes(1).pid());
  }
  auto records = host.journal_tail(1000);
  if (!records)
    return std::move(records.error());
  for (auto& record : *records)
    if (record.has_coordinator_started())
      return static_cast<pid_t>(record.coordinator_started().pid());
  return wrong("the journal does not say which process the coordinator is");
}

/// What a shell does meanwhile, in a process of its own: this one may be the one that stands.
caf::expected<std::string> story_of(client& host, const std::string& who, double seconds) {
  if (who == "connections") {
    auto info = host.devices();
    if (!info)
      return std::move(info.error());
    auto port = info->nodes(0).port(); // the others have come to it
    return fmt::format("sleep 0.2; ss -K sport = :{0} > /dev/null; ss -K dport = :{0} > /dev/null; sleep {1}", port,
                       seconds);
  }
  if (who == "none") {
    fmt::print("operations fly\n");
    std::fflush(stdout);
    return fmt::format("sleep {}", seconds);
  }
  if (who == "hosts-away") // of tests/programs/hosts.sh
    return fmt::format("sleep 0.2; hosts-away {}", seconds);
  if (who == "hosts-cut") // of tests/programs/hosts.sh
    return fmt::format("sleep 0.2; hosts-cut; sleep {}", seconds);
  auto process = process_of(host, who);
  if (!process)
    return std::move(process.error());
  return fmt::format("sleep 0.2; kill -STOP {0}; sleep {1}; kill -CONT {0}", *process, seconds);
}

pid_t start_shell(const std::string& story) {
  auto child = ::fork();
  if (child == 0) {
    ::execl("/bin/sh", "sh", "-c", story.c_str(), nullptr);
    ::_exit(127);
  }
  return child;
}

/// An operation, waited for.
caf::error run_once(client& host, const gpu_sim::AllReduceRingRequest& request, bool epoch_may_change) {
  if (auto sequence = host.all_reduce_ring(request); !sequence)
    return sequence.error();
  auto status = host.wait(communicator_id{request.commid()}, std::chrono::seconds{30});
  if (!status)
    return status.error();
  return status->status() == gpu_sim::SUCCESS && (epoch_may_change || status->epoch() == 1)
             && status->devices_size() == 8
           ? caf::error{}
           : wrong(status->ShortDebugString());
}

caf::error check_outputs(client& host, const gpu_sim::CommInitResponse& comm) {
  for (auto& device : comm.devices()) {
    auto output = host.copy_to_host(id_of(device), device.minmemaddr().value() + count * sizeof(double),
                                    count * sizeof(double));
    if (!output)
      return output.error();
    for (auto x : output->as<double>())
      if (x != right)
        return wrong(fmt::format("device 0x{:x} holds {}, not {}", device.deviceid().value(), x, right));
  }
  return caf::none;
}

caf::error run(client& host, const std::string& who, double seconds) {
  auto before = host.devices(8, std::chrono::seconds{10});
  if (!before)
    return before.error();
  auto comm = host.comm_init(8, proto::SHRINK);
  if (!comm)
    return comm.error();
  gpu_sim::AllReduceRingRequest request;
  request.set_commid(comm->commid());
  request.set_count(count);
  for (int rank = 0; rank < 8; ++rank) {
    auto& device = comm->devices(rank);
    if (auto problem = host.copy_to_device(id_of(device), device.minmemaddr().value(),
                                           byte_block::of(std::vector<double>(count, 1 << rank))))
      return problem;
    (*request.mutable_memaddrs())[rank] = device.minmemaddr();
    (*request.mutable_outputaddrs())[rank].set_value(device.minmemaddr().value() + count * sizeof(double));
  }
  auto story = story_of(host, who, seconds);
  if (!story)
    return story.error();
  auto child = start_shell(*story);
  uint64_t operations = 0;
  int ended = 0;
  auto longest = steady::duration{};
  bool epoch_may_change = who == "connections" || who == "hosts-cut" || who == "hosts-away";
  auto give_up = steady::now() + std::chrono::seconds{60};
  for (uint64_t after = 0; after < 20 && steady::now() < give_up; ++operations) {
    auto begun = steady::now();
    if (auto problem = run_once(host, request, epoch_may_change))
      return problem;
    longest = std::max(longest, steady::now() - begun);
    ended = ended != 0 ? ended : ::waitpid(child, nullptr, WNOHANG);
    after += ended != 0; // some more, once all processes continue
  }
  if (auto problem = check_outputs(host, *comm))
    return problem;
  auto info = host.info();
  if (!info)
    return info.error();
  if (ended != child || info->nodes_size() != before->nodes_size() || info->devices_size() != 8
      || info->gone_size() != 0)
    return wrong(info->ShortDebugString());
  fmt::print("{} was stopped for {} s: nothing is lost, {} operations are right, the longest took {:.1f} s\n", who,
             seconds, operations, std::chrono::duration<double>{longest}.count());
  return caf::none;
}

} // namespace

int main(int argc, char** argv) {
  std::string who = argc > 1 ? argv[1] : "";
  auto seconds = argc > 2 ? std::atof(argv[2]) : 1;
  return run_on_cluster("process_pause", [&](client& host) { return run(host, who, seconds); });
}
