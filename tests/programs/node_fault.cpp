// A program for caf-run: runs all-reduces on the devices of all nodes, kills or freezes one of the nodes in the middle,
// or cuts the files of its memories, and checks what becomes of the operations, the communicator and the others.
#include "tests/programs/cluster_program.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <set>
#include <thread>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

constexpr uint64_t count = 1 << 19; // 4 MiB a rank: long enough to be interrupted
using steady = std::chrono::steady_clock;
constexpr std::string_view ways[] = {"kill", "freeze", "freeze-idle", "kill-joint", "cut", "orphan", "large-copy"};

/// Waits until only `devices` are there.
caf::error await_loss(client& host, int devices, std::chrono::seconds limit) {
  auto give_up = steady::now() + limit;
  for (;;) {
    auto info = host.devices();
    if (!info)
      return info.error();
    if (info->devices_size() == devices)
      return caf::none;
    if (steady::now() > give_up)
      return wrong(fmt::format("{} devices are still there", info->devices_size()));
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
}

/// Asks for the status until a rank of that node is known to be silent. No answer waits for the node: each comes long
/// before the node's connection is given up.
caf::error watch_silence(client& host, const proto::ClusterInfo::Node& frozen) {
  const auto place = fmt::format("pid {}", frozen.pid());
  double longest_ms = 0;
  for (auto give_up = steady::now() + std::chrono::seconds{2}; steady::now() < give_up;
       std::this_thread::sleep_for(std::chrono::milliseconds{10})) {
    auto start = steady::now();
    auto status = host.cluster_status();
    if (!status)
      return status.error();
    longest_ms = std::max(longest_ms, std::chrono::duration<double, std::milli>{steady::now() - start}.count());
    if (longest_ms > 1000)
      return wrong(fmt::format("the status took {:.0f} ms", longest_ms));
    for (auto& rank : status->communicators(0).ranks())
      for (auto& device : status->cluster().devices())
        if (device.metadata().deviceid().value() == rank.device_id() && rank.silent_ns() > 300'000'000
            && device.metadata().place().ends_with(place)) {
          fmt::print("device 0x{:x} is silent, as the status says within {:.0f} ms\n", rank.device_id(), longest_ms);
          return caf::none;
        }
  }
  return wrong("no rank of the frozen node is silent");
}

caf::error run(client& host, int signal, bool idle) {
  auto info = host.devices(8, std::chrono::seconds{10});
  if (!info)
    return info.error();
  auto victim = info->nodes(1);
  auto on_victim = [&](uint64_t device) {
    return std::any_of(info->devices().begin(), info->devices().end(), [&](auto& x) {
      return x.metadata().deviceid().value() == device && x.node_id() == victim.node_id();
    });
  };
  auto comm = host.comm_init(8, proto::SHRINK);
  if (!comm)
    return comm.error();
  if (idle) {
    ::kill(static_cast<pid_t>(victim.pid()), signal);
    auto problem = await_loss(host, 6, std::chrono::seconds{8});
    ::kill(static_cast<pid_t>(victim.pid()), SIGCONT);
    return problem;
  }
  gpu_sim::AllReduceRingRequest request;
  request.set_commid(comm->commid());
  request.set_count(count);
  double survivors_sum = 0;
  for (int rank = 0; rank < 8; ++rank) {
    auto& device = comm->devices(rank);
    auto value = static_cast<double>(1 << rank);
    if (!on_victim(device.deviceid().value()))
      survivors_sum += value;
    if (auto problem = host.copy_to_device(id_of(device), device.minmemaddr().value(),
                                           byte_block::of(std::vector<double>(count, value))))
      return problem;
    (*request.mutable_memaddrs())[rank] = device.minmemaddr();
  }
  if (auto sequence = host.all_reduce_ring(request); !sequence)
    return sequence.error();
  auto start = steady::now();
  ::kill(static_cast<pid_t>(victim.pid()), signal);
  auto unseen = signal == SIGSTOP ? watch_silence(host, victim) : caf::error{};
  auto status = host.wait(id_of(*comm), std::chrono::seconds{20});
  auto took_ms = std::chrono::duration<double, std::milli>{steady::now() - start}.count();
  ::kill(static_cast<pid_t>(victim.pid()), SIGCONT); // so that it can be ended in good order
  if (unseen || !status)
    return unseen ? unseen : status.error();
  if (status->status() != gpu_sim::SUCCESS || status->devices_size() != 6 || status->epoch() < 2)
    return wrong(status->ShortDebugString());
  for (auto& device : status->devices()) {
    auto output = host.copy_to_host(id_of(device), device.minmemaddr().value(), count * sizeof(double));
    if (!output)
      return output.error();
    for (auto x : output->as<double>())
      if (x != survivors_sum)
        return wrong(fmt::format("device 0x{:x} holds {}, not {}", device.deviceid().value(), x, survivors_sum));
  }
  fmt::print("right on {} survivors after {:.0f} ms\n", status->devices_size(), took_ms);
  return host.destroy(id_of(*comm));
}

/// In place, from memory to memory: each operation has the sum of all ranks or of the survivors, on all of them.
caf::error run_in_shared_memory(client& host) {
  constexpr uint32_t operations = 6;
  auto info = host.devices(8, std::chrono::seconds{10});
  if (!info)
    return info.error();
  auto victim = info->nodes(1);
  auto comm = host.comm_init(8, proto::SHRINK);
  if (!comm)
    return comm.error();
  proto::CollectiveRequest request;
  request.set_comm_id(comm->commid());
  request.mutable_collective()->set_algorithm("direct");
  request.mutable_collective()->set_count(count);
  for (auto& device : comm->devices()) {
    request.add_inputs(device.minmemaddr().value());
    if (auto problem = host.copy_to_device(id_of(device), device.minmemaddr().value(),
                                           byte_block::of(std::vector<double>(count, 1))))
      return problem;
  }
  for (uint32_t i = 0; i < operations; ++i)
    host.begin_collective(request);
  ::kill(static_cast<pid_t>(victim.pid()), SIGKILL);
  host.finish_calls(); // what is called with too many addresses by now is refused
  auto status = host.wait(id_of(*comm), std::chrono::seconds{20});
  if (!status)
    return status.error();
  if (status->devices_size() != 6)
    return wrong(status->ShortDebugString());
  std::set<double> possible, found;
  for (uint32_t of_all = 0; of_all <= operations; ++of_all)
    for (uint32_t of_survivors = 0; of_all + of_survivors <= operations; ++of_survivors)
      possible.insert(std::pow(8, of_all) * std::pow(6, of_survivors));
  for (auto& device : status->devices()) {
    auto output = host.copy_to_host(id_of(device), device.minmemaddr().value(), count * sizeof(double));
    if (!output)
      return output.error();
    auto values = output->as<double>();
    found.insert(values.begin(), values.end());
  }
  if (found.size() != 1 || possible.count(*found.begin()) == 0)
    return wrong(fmt::format("the survivors hold {}", fmt::join(found, ", ")));
  fmt::print("right on 6 survivors\n");
  return host.destroy(id_of(*comm));
}

/// The files of its devices' memories, as the system knows them.
std::set<std::string> memory_files(uint64_t pid) {
  std::set<std::string> result;
  std::ifstream maps{fmt::format("/proc/{}/maps", pid)};
  for (std::string word; maps >> word;)
    if (word.ends_with(".memory"))
      result.insert(word);
  return result;
}

/// Truncated memory files harm their device and no other: a later in-place call is right over the others.
caf::error run_cut(client& host) {
  auto info = host.devices(8, std::chrono::seconds{10});
  auto comm = info ? host.comm_init(8, proto::SHRINK) : caf::expected<gpu_sim::CommInitResponse>{info.error()};
  if (!comm)
    return comm.error();
  auto request = proto::CollectiveRequest{};
  request.set_comm_id(comm->commid());
  request.mutable_collective()->set_algorithm("direct");
  request.mutable_collective()->set_count(count);
  for (auto& device : comm->devices()) {
    request.add_inputs(device.minmemaddr().value());
    if (auto problem = host.copy_to_device(id_of(device), device.minmemaddr().value(),
                                           byte_block::of(std::vector<double>(count, 1))))
      return problem;
  }
  auto before = host.collective(request); // all memories are mapped by now
  auto ended = host.wait(id_of(*comm), std::chrono::seconds{20});
  if (!before || !ended || ended->status() != gpu_sim::SUCCESS)
    return wrong("nothing was wrong yet");
  auto files = memory_files(info->nodes(1).pid());
  if (files.size() != 2)
    return wrong(fmt::format("node {} maps {} memory files", info->nodes(1).name(), files.size()));
  for (auto& file : files)
    std::filesystem::resize_file(file, 0);
  auto again = host.collective(request);
  ended = host.wait(id_of(*comm), std::chrono::seconds{20});
  if (!again || !ended)
    return again ? ended.error() : again.error();
  if (ended->status() != gpu_sim::SUCCESS || ended->devices_size() != 6 || ended->epoch() > 3) // both at once
    return wrong(ended->ShortDebugString());
  for (auto& device : ended->devices()) {
    auto output = host.copy_to_host(id_of(device), device.minmemaddr().value(), count * sizeof(double));
    if (!output)
      return output.error();
    for (auto x : output->as<double>())
      if (x != 8 * 6)
        return wrong(fmt::format("device 0x{:x} holds {}, not {}", device.deviceid().value(), x, 8 * 6));
  }
  if (auto problem = host.destroy(id_of(*comm)))
    return problem;
  auto after = host.info();
  if (!after)
    return after.error();
  std::set<std::string> there;
  for (auto& node : after->nodes())
    there.insert(node.name());
  for (int other : {0, 2, 3})
    if (there.count(info->nodes(other).name()) == 0)
      return wrong(after->ShortDebugString());
  fmt::print("no other device was harmed: {}\n", ended->asyncerror());
  return caf::none;
}

/// A client whose coordinator is killed gets an error at once, whatever limit its call has.
caf::error run_orphaned(client& host) {
  std::signal(SIGTERM, SIG_IGN); // of caf-run, who sees it as well
  auto records = host.journal_tail(1000);
  if (!records)
    return records.error();
  for (auto& record : *records)
    if (record.has_coordinator_started())
      ::kill(static_cast<pid_t>(record.coordinator_started().pid()), SIGKILL);
  auto start = steady::now();
  caf::error problem;
  for (int i = 0; i < 100; ++i) {
    auto answer = host.devices(1000, std::chrono::seconds{60}); // more than ever join
    if (answer || code_of(answer.error()) != errc::device_lost)
      return wrong(answer ? "an answer" : render(answer.error()));
    problem = answer.error();
  }
  auto took = std::chrono::duration<double>{steady::now() - start}.count();
  fmt::print("100 calls ended within {} s: {}\n", std::ceil(took), render(problem));
  return caf::none;
}

/// A copy to a device, and the delay of other calls to the coordinator and to the neighbouring device.
caf::error run_large_copy(client& host, client& other, uint64_t mebibytes) {
  auto info = host.devices(2, std::chrono::seconds{10});
  if (!info)
    return info.error();
  auto device = info->devices(0).metadata();
  auto beside = info->devices(1).metadata();
  std::vector<uint64_t> data(mebibytes << 17);
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = i * 0x9e3779b97f4a7c15;
  std::atomic<bool> over{false};
  std::vector<double> took_ms;
  double silent_ms = 0; // of the nodes, between two signs of life
  caf::error problem;
  std::thread caller{[&] {
    auto timed = [&](auto call) {
      auto start = steady::now();
      problem = problem ? problem : call();
      took_ms.push_back(std::chrono::duration<double, std::milli>{steady::now() - start}.count());
    };
    do {
      timed([&] {
        auto answer = other.info();
        return answer ? caf::error{} : answer.error();
      });
      timed([&] {
        return other.copy_to_device(id_of(beside), beside.minmemaddr().value(), byte_block::of(std::vector<int>{1}));
      });
      timed([&] {
        auto status = other.cluster_status(); // which asks each node whether it lives
        if (!status)
          return status.error();
        for (auto& node : status->cluster().nodes())
          silent_ms = std::max(silent_ms, static_cast<double>(node.silent_ns()) / 1e6);
        return caf::error{};
      });
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    } while (!over && !problem);
  }};
  auto start = steady::now();
  auto copied = host.copy_to_device(id_of(device), device.minmemaddr().value(), byte_block::of(data));
  auto took_s = std::chrono::duration<double>{steady::now() - start}.count();
  over = true;
  caller.join();
  if (copied || problem)
    return copied ? copied : problem;
  auto back = host.copy_to_host(id_of(device), device.minmemaddr().value(), data.size() * sizeof(uint64_t));
  if (!back)
    return back.error();
  if (!std::ranges::equal(back->as<uint64_t>(), data))
    return wrong("the device holds something else");
  std::ranges::sort(took_ms);
  fmt::print("{} MiB in {:.1f} s, other calls took {:.0f} ms in the median, {:.0f} ms at most; nodes were silent for "
             "{:.0f} ms at most\n",
             mebibytes, took_s, took_ms[took_ms.size() / 2], took_ms.back(), silent_ms);
  return caf::none;
}

} // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  if (std::ranges::find(ways, how) == std::end(ways)) {
    fmt::print(stderr, "usage: caf-run ... -- node_fault {} [MEBIBYTES, of large-copy]\n", fmt::join(ways, "|"));
    return 2;
  }
  return run_on_cluster("node_fault", [&](client& host) {
    if (how == "kill-joint")
      return run_in_shared_memory(host);
    if (how == "large-copy") {
      client other{host.system(), host.coordinator()};
      return run_large_copy(host, other, argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 16);
    }
    if (how == "orphan")
      return run_orphaned(host);
    if (how == "cut")
      return run_cut(host);
    return run(host, how == "kill" ? SIGKILL : SIGSTOP, how == "freeze-idle");
  });
}
