// A program for caf-run: runs all-reduces on the devices of all nodes while the coordinator's process is killed again
// and again, and checks every result. The launcher restarts the coordinator, and this program does not notice but by
// time.
//
//   coordinator_kills KILLS ALGORITHM in-place|separate [ELEMENTS]
#include "messages/try.hpp"
#include "tests/programs/cluster_program.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

using steady = std::chrono::steady_clock;

struct plan {
  int kills = 3;
  std::string algorithm = "auto";
  bool in_place = false;
  uint64_t count = 1024; ///< Of int32.
};

/// Kills the coordinator's process at random moments, each after it has served again.
class killer {
public:
  explicit killer(int kills) : thread_{[this, kills] { run(kills); }} {}
  ~killer() { thread_.join(); }
  bool is_done() const { return done_; }
  int killed() const { return killed_; }

private:
  void run(int kills) {
    std::mt19937 random{42};
    for (int i = 0; i < kills; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds{300 + random() % 300});
      if (const auto pid = coordinator(); pid > 0 && ::kill(pid, SIGKILL) == 0)
        ++killed_;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{300});
    done_ = true;
  }

  /// The launcher's child that is it; 0: there is none now.
  static pid_t coordinator() {
    const auto launcher = ::getppid();
    std::ifstream children{fmt::format("/proc/{0}/task/{0}/children", launcher)};
    for (pid_t child = 0; children >> child;) {
      std::string command, word;
      std::ifstream words{fmt::format("/proc/{}/cmdline", child)};
      std::getline(words, command, '\0');
      std::getline(words, word, '\0');
      if (word == "coordinator")
        return child;
    }
    return 0;
  }

  std::atomic<bool> done_{false};
  std::atomic<int> killed_{0};
  std::thread thread_;
};

/// What rank `rank` contributes to element `i` of a round.
int32_t input_of(uint64_t round, uint32_t rank, uint64_t i) {
  return static_cast<int32_t>((round * 31 + rank * 7 + i) % 1000);
}

caf::error run(client& host, const plan& what) {
  TRY(there, host.devices(4, std::chrono::seconds{10}));
  TRY(comm, host.comm_init(static_cast<uint32_t>(there->devices_size()), proto::SHRINK));
  const auto ranks = static_cast<uint32_t>(comm->devices_size());
  const auto bytes = what.count * sizeof(int32_t);
  std::vector<uint64_t> inputs, outputs;
  for (auto& device : comm->devices()) {
    TRY(in, host.allocate(id_of(device), bytes));
    TRY(out, host.allocate(id_of(device), bytes));
    inputs.push_back(*in);
    outputs.push_back(*out);
  }
  double longest_ms = 0;
  uint64_t rounds = 0, failed = 0;
  int killed = 0;
  {
    killer kills{what.kills};
    for (bool last = false; !last; ++rounds) {
      last = kills.is_done();
      killed = kills.killed();
      const auto start = steady::now();
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        std::vector<int32_t> data(what.count);
        for (uint64_t i = 0; i < what.count; ++i)
          data[i] = input_of(rounds, rank, i);
        RETURN_ERROR(host.copy_to_device(id_of(comm->devices(static_cast<int>(rank))), inputs[rank],
                                         byte_block::of(data)));
      }
      proto::CollectiveRequest request;
      request.set_comm_id(comm->commid());
      request.mutable_collective()->set_kind(proto::ALL_REDUCE);
      request.mutable_collective()->set_algorithm(what.algorithm);
      request.mutable_collective()->set_datatype(proto::INT32);
      request.mutable_collective()->set_op(gpu_sim::SUM);
      request.mutable_collective()->set_count(what.count);
      request.mutable_inputs()->Add(inputs.begin(), inputs.end());
      if (!what.in_place)
        request.mutable_outputs()->Add(outputs.begin(), outputs.end());
      TRY(called, host.collective(request));
      TRY(status, host.wait(id_of(*comm), std::chrono::seconds{30}));
      const auto took = std::chrono::duration<double, std::milli>{steady::now() - start}.count();
      longest_ms = std::max(longest_ms, took);
      if (status->status() != gpu_sim::SUCCESS) {
        ++failed;
        fmt::print("round {} failed: {}\n", rounds, status->error());
        continue;
      }
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        TRY(back, host.copy_to_host(id_of(comm->devices(static_cast<int>(rank))),
                                    what.in_place ? inputs[rank] : outputs[rank], bytes));
        const auto values = back->as<int32_t>();
        for (uint64_t i = 0; i < what.count; ++i) {
          int32_t expected = 0;
          for (uint32_t other = 0; other < ranks; ++other)
            expected += input_of(rounds, other, i);
          if (values[i] != expected)
            return wrong(fmt::format("round {}, rank {}, element {}: {}, not {}", rounds, rank, i, values[i],
                                     expected));
        }
      }
    }
  }
  TRY(after, host.members(id_of(*comm)));
  if (static_cast<uint32_t>(after->devices_size()) != ranks)
    return wrong("ranks are lost: " + after->asyncerror());
  fmt::print(
    "{} kills: {} rounds right, {} failed with a reason, the longest took {:.0f} ms, in epoch {} with {} ranks\n",
    killed, rounds - failed, failed, longest_ms, after->epoch(), ranks);
  return caf::none;
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "usage: caf-run ... -- coordinator_kills KILLS ALGORITHM in-place|separate [ELEMENTS]\n");
    return 2;
  }
  plan what{std::atoi(argv[1]), argv[2], std::string{argv[3]} == "in-place",
            argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 1024};
  return run_on_cluster("coordinator_kills", [&](client& host) { return run(host, what); });
}
