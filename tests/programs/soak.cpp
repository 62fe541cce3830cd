// A cluster of processes of this host that is ill-treated for a long time: operations run without a pause, while nodes
// are killed and replaced, and nodes and the coordinator are stopped and go on. Every operation must be right over the
// ranks that its answer names, or be refused with its reason; no call may take longer than its limit; no process may
// end that nobody has ended; memory stays level. Ends with 0 where that was so.
//   soak [--minutes N] [--seed S]
#include "actors/configuration/configuration.hpp"
#include "client/client.hpp"
#include "client/cluster.hpp"
#include "tests/programs/soak_cluster.hpp"

#include <atomic>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <optional>
#include <thread>

using namespace ringmaster;
using namespace ringmaster::soak;
using std::chrono::duration;
using std::chrono::seconds;

namespace {

struct tally {
  uint64_t right = 0, refused = 0, wrong = 0, hung = 0;
  std::map<std::string, uint64_t> reasons; ///< Of refusals, without numbers.
  std::vector<double> recoveries_s;        ///< From an event to the end of the operation that it met.
  double longest_s = 0;                    ///< Of a call.
  std::vector<uint64_t> memory_bytes;      ///< The coordinator's own, minute by minute.

  /// Whether the second half of the time took more than the first, by a tenth and what a minute may differ.
  bool memory_grows() const {
    constexpr size_t minutes_min = 8; // before, it has not seen everything once
    constexpr uint64_t difference = 16u << 20;
    if (memory_bytes.size() < minutes_min)
      return false;
    auto half = memory_bytes.begin() + static_cast<ptrdiff_t>(memory_bytes.size() / 2);
    auto first = *std::max_element(memory_bytes.begin(), half), second = *std::max_element(half, memory_bytes.end());
    return second > first + first / 10 + difference;
  }
};

/// Words that differ from refusal to refusal, as #.
std::string without_numbers(const std::string& text) {
  std::string result;
  for (char c : text)
    if (std::isdigit(static_cast<unsigned char>(c)) == 0)
      result += c;
    else if (result.empty() || result.back() != '#')
      result += '#';
  return result.substr(0, 90);
}

class work {
public:
  work(client& host, soak_cluster& cluster, std::mt19937_64& random, tally& result)
    : host_(host), cluster_(cluster), random_(random), result_(result) {}

private:
  template <class Call>
  auto timed(Call call) {
    constexpr double limit_s = 95; // a wait of 60 s, and the client's own limit
    auto begun = steady::now();
    auto answer = call();
    auto took = duration<double>{steady::now() - begun}.count();
    result_.longest_s = std::max(result_.longest_s, took);
    result_.hung += took > limit_s ? 1 : 0;
    return answer;
  }

public:
  /// Some operations on a communicator of all devices that are free.
  void round() {
    auto there = timed([&] { return host_.devices(2, seconds{20}); });
    if (!there)
      return refuse(there.error());
    auto ranks = std::min(there->devices_size(), 8);
    auto policy = random_() % 2 == 0 ? proto::SHRINK : proto::REPLACE;
    if (policy == proto::REPLACE)
      ranks = std::max(ranks - 2, 2);
    auto comm = timed([&] { return host_.comm_init(static_cast<uint32_t>(ranks), policy); });
    if (!comm)
      return refuse(comm.error());
    constexpr uint64_t counts[] = {1, 1024, 1u << 17, 1u << 20};
    auto count = counts[random_() % 4];
    for (int i = 0; i < 10 && run(*comm, count); ++i) {
    }
    timed([&] { return host_.destroy(id_of(*comm)); });
  }

private:
  /// Whether the communicator can go on.
  bool run(const gpu_sim::CommInitResponse& comm, uint64_t count) {
    auto status = timed([&] { return host_.status(id_of(comm)); });
    if (!status)
      return refuse(status.error()), false;
    // Whoever is there: its value is a bit of its own, so that a sum tells whose values are in it.
    proto::CollectiveRequest request;
    request.set_comm_id(comm.commid());
    auto& what = *request.mutable_collective();
    constexpr const char* algorithms[] = {"ring", "tree", "auto"};
    what.set_algorithm(algorithms[random_() % 3]);
    what.set_count(count);
    for (int rank = 0; rank < status->devices_size(); ++rank) {
      auto& device = status->devices(rank);
      auto base = device.minmemaddr().value();
      auto problem = timed([&]() -> caf::expected<bool> {
        if (auto x = host_.copy_to_device(id_of(device), base,
                                          byte_block::of(std::vector<double>(count, std::exp2(rank)))))
          return x;
        return true;
      });
      if (!problem)
        return refuse(problem.error()), true;
      request.add_inputs(base);
      request.add_outputs(base + count * sizeof(double));
    }
    bool met_event = cluster_.take_event();
    auto begun = steady::now();
    auto sequence = timed([&] { return host_.collective(request); });
    if (!sequence)
      return refuse(sequence.error()), code_of(sequence.error()) != errc::unknown_communicator;
    auto ended = timed([&] { return host_.wait(id_of(comm), seconds{60}); });
    if (met_event || cluster_.take_event())
      result_.recoveries_s.push_back(duration<double>{steady::now() - begun}.count());
    if (!ended)
      return refuse(ended.error()), false;
    if (ended->status() != gpu_sim::SUCCESS)
      return refuse(error_from_wire(ended->code(), ended->error())), true;
    return check(*ended, *status, count), true;
  }

  /// All ranks of the answer hold one sum, in which the value of each of them is.
  void check(const gpu_sim::GetCommStatusResponse& now, const gpu_sim::GetCommStatusResponse& then, uint64_t count) {
    std::optional<double> sum;
    for (auto& device : now.devices()) {
      auto output = timed([&] {
        return host_.copy_to_host(id_of(device), device.minmemaddr().value() + count * sizeof(double),
                                  count * sizeof(double));
      });
      if (!output)
        return refuse(output.error()); // it was lost since
      for (auto x : output->as<double>())
        if (x != sum.value_or(x))
          return wrong(now, fmt::format("device 0x{:x} holds {}, another one {}", id_of(device), x, *sum));
        else
          sum = x;
    }
    auto whose = static_cast<uint64_t>(sum.value_or(0));
    for (int rank = 0; rank < then.devices_size(); ++rank)
      for (auto& device : now.devices())
        if (id_of(device) == id_of(then.devices(rank)) && (whose >> rank) % 2 == 0)
          return wrong(now, fmt::format("the sum {} is without rank {}'s value", whose, rank));
    ++result_.right;
  }

  void wrong(const gpu_sim::GetCommStatusResponse& now, const std::string& text) {
    ++result_.wrong;
    fmt::print("WRONG: {}; {}\n", text, now.ShortDebugString());
  }

  void refuse(const caf::error& why) {
    ++result_.refused;
    ++result_.reasons[without_numbers(render(why))];
  }

  client& host_;
  soak_cluster& cluster_;
  std::mt19937_64& random_;
  tally& result_;
};

std::vector<uint64_t> mebibytes(const tally& x) {
  auto result = x.memory_bytes;
  for (auto& bytes : result)
    bytes >>= 20;
  return result;
}

void report(const tally& x, const soak_cluster& cluster, double minutes) {
  auto events = cluster.so_far();
  auto recoveries = x.recoveries_s;
  std::sort(recoveries.begin(), recoveries.end());
  auto at = [&](double part) {
    return recoveries.empty() ? 0 : recoveries[static_cast<size_t>(part * static_cast<double>(recoveries.size() - 1))];
  };
  fmt::print(
    "{:6.1f} min: {} right, {} refused, {} wrong; {} kills, {} pauses; recoveries {:.2f} s median, {:.2f} s at "
    "most; longest call {:.1f} s, {} over its limit; {} lost; coordinator {} MiB\n",
    minutes, x.right, x.refused, x.wrong, events.kills, events.pauses, at(0.5), at(1), x.longest_s, x.hung, events.lost,
    cluster.coordinator_bytes() >> 20);
  std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv) {
  double minutes = 30;
  uint64_t seed = std::random_device{}();
  for (int i = 1; i + 1 < argc; i += 2)
    if (std::strcmp(argv[i], "--minutes") == 0)
      minutes = std::atof(argv[i + 1]);
    else if (std::strcmp(argv[i], "--seed") == 0)
      seed = std::strtoull(argv[i + 1], nullptr, 10);
  if (argc % 2 == 0 || minutes <= 0) {
    fmt::print(stderr, "usage: soak [--minutes N] [--seed S]\n");
    return 2;
  }
  soak_cluster cluster{4};
  fmt::print("seed {}, {} minutes, logs in {}\n", seed, minutes, cluster.logs());
  configuration cfg;
  auto join = fmt::format("--node.join={}", cluster.address());
  if (auto problem = cfg.read({join}, std::nullopt)) {
    fmt::print(stderr, "soak: {}\n", render(problem));
    return 1;
  }
  caf::actor_system system{cfg};
  auto home = cluster::open(system, cfg.values());
  if (!home) {
    fmt::print(stderr, "soak: {}\n", render(home.error()));
    return 1;
  }
  client host{system, (*home)->coordinator()};
  tally result;
  std::atomic<bool> over{false};
  std::mt19937_64 chaos{seed}, random{seed + 1};
  std::thread events{[&] {
    while (!over) {
      cluster.advance(chaos); // while a call waits
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
  }};
  auto begun = steady::now();
  auto elapsed = [&] { return duration<double>{steady::now() - begun}.count() / 60; };
  work operations{host, cluster, random, result};
  for (double told = 0; elapsed() < minutes;) {
    operations.round();
    if (elapsed() >= told + 1) {
      told = elapsed();
      result.memory_bytes.push_back(cluster.coordinator_bytes());
      report(result, cluster, told);
    }
  }
  over = true;
  events.join();
  report(result, cluster, elapsed());
  for (auto& [reason, times] : result.reasons)
    fmt::print("  refused {} times: {}\n", times, reason);
  if (result.memory_grows())
    fmt::print("MEMORY: the coordinator's own grows; MiB minute by minute: {}\n", fmt::join(mebibytes(result), " "));
  return result.wrong + result.hung + cluster.so_far().lost == 0 && result.right > 0 && !result.memory_grows() ? 0 : 1;
}
