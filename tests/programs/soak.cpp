// A cluster of processes of this host that is ill-treated for a long time: operations run without a pause under all
// three failure policies, while nodes are killed and replaced; the coordinator is killed and started again on its
// store, whose disk is full now and then; nodes, the coordinator or all of them are stopped for up to 30 s; single
// devices are killed, hang and are slow in processes that live on; and the cables of one node or of all are out for up
// to 14 s. Every operation must be right over the ranks that its answer names, or be refused with its reason;
// operations that could not be judged are counted and explained; no call may take longer than its limit; no process may
// end that was not killed; memory stays level; and one order of all calls explains their answers
// (tests/support/histories). Exits with 0 where that was so, else with 1 and the arguments that do the same again.
//   soak [--minutes N] [--seed S] [--nodes N] [--route auto|memory|link|messages] [--network-cuts yes|no|auto]
//        [--silence-max S]   no stop and no cut is longer than that many seconds (30)
//   soak --events N ...   until that many kills and stops, and as many faults of devices, have come, one soon after the
//                         other, and every kind was right; cuts only where they are asked for, and no harm to the
//                         coordinator but stops
#include "actors/configuration/configuration.hpp"
#include "tests/programs/soak_devices.hpp"
#include "tests/programs/soak_work.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <latch>
#include <optional>
#include <thread>
#include <unistd.h>
#include <utility>

using namespace ringmaster;
using namespace ringmaster::soak;
using std::chrono::duration;

namespace {

struct settings {
  double minutes = 30;
  uint64_t seed = std::random_device{}();
  size_t nodes = 4;
  uint64_t events = 0; ///< 0: the soak ends after a number of minutes.
  std::string route = "auto";
  uint64_t silence_max_s = 30;
  std::string network_cuts = "auto"; ///< yes, no, or auto: where the system allows it, but not with `events`.
};

/// Nothing where the arguments make no sense.
std::optional<settings> read_settings(int argc, char** argv) {
  auto read = [](const std::string& text, auto& into) {
    auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), into);
    return problem == std::errc{} && end == text.data() + text.size();
  };
  settings x;
  bool makes_sense = argc % 2 == 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string name = argv[i], value = argv[i + 1];
    if (name == "--route")
      x.route = value;
    else if (name == "--network-cuts")
      x.network_cuts = value;
    else
      makes_sense = makes_sense
                    && (name == "--minutes"       ? read(value, x.minutes)
                        : name == "--seed"        ? read(value, x.seed)
                        : name == "--nodes"       ? read(value, x.nodes)
                        : name == "--silence-max" ? read(value, x.silence_max_s)
                                                  : name == "--events" && read(value, x.events));
  }
  makes_sense = makes_sense && x.minutes > 0 && x.nodes > 0 && x.silence_max_s > 0
                && (x.network_cuts == "yes" || x.network_cuts == "no" || x.network_cuts == "auto");
  return makes_sense ? std::optional{x} : std::nullopt;
}

/// A process's own memory, minute by minute: the least of what it had between two rounds, for what an operation has
/// taken is given back seconds later.
struct memory_watch {
  std::string whose;
  std::vector<uint64_t> bytes{};
  uint64_t least = UINT64_MAX; ///< In this minute.

  void look(uint64_t now) { least = std::min(least, now); }
  void minute_ends() { bytes.push_back(std::exchange(least, UINT64_MAX)); }

  /// Whether the least of the last quarter of the time is more than that of the second, by a tenth and what it may
  /// differ. In the first it takes what it needs once: threads keep blocks that they have freed.
  bool grows() const {
    constexpr size_t minutes_min = 8;
    constexpr uint64_t difference = 16u << 20;
    if (bytes.size() < minutes_min)
      return false;
    const auto quarter = static_cast<ptrdiff_t>(bytes.size() / 4);
    const auto before = *std::min_element(bytes.begin() + quarter, bytes.begin() + 2 * quarter);
    const auto then = *std::min_element(bytes.end() - quarter, bytes.end());
    return then > before + before / 10 + difference;
  }

  std::vector<uint64_t> mebibytes() const {
    auto result = bytes;
    for (auto& x : result)
      x >>= 20;
    return result;
  }
};

void report(const tally& x, const soak_cluster& cluster, double minutes) {
  auto events = cluster.so_far();
  auto recoveries = x.recoveries_s;
  std::sort(recoveries.begin(), recoveries.end());
  auto at = [&](double part) {
    return recoveries.empty() ? 0 : recoveries[static_cast<size_t>(part * static_cast<double>(recoveries.size() - 1))];
  };
  fmt::print("{:6.1f} min: {} right of {} kinds, {} run again, {} refused, {} not judged, {} wrong; {} kills of nodes "
             "and {} of the "
             "coordinator, {} stops, {} cuts, {} device faults, {} full disks; recoveries {:.2f} s median, {:.2f} s at "
             "most; longest call {:.1f} s, {} over its limit; longest gap "
             "{:.1f} s; {} reconnects; {} "
             "lost; coordinator {} MiB, clients {} MiB\n",
             minutes, x.right, x.kinds.size(), x.reran, x.refused, x.unjudged, x.wrong, events.kills,
             events.coordinator_kills, events.pauses, events.cuts, events.device_faults, events.full_disks, at(0.5),
             at(1), x.longest_s, x.hung, x.longest_gap_s, x.reconnects, events.lost, cluster.coordinator_bytes() >> 20,
             own_bytes(::getpid()) >> 20);
  std::fflush(stdout);
}

/// Runs until it is over; returns whether all was as it must be.
bool run(const settings& x, soak_connection& connection, soak_connection& for_devices, soak_cluster& cluster) {
  constexpr double limit_minutes = 2; // for a few events
  std::atomic<bool> over{false}, devices_are_left_alone{false};
  std::latch is_calm{1}, is_judged{1};
  std::thread device_events{[&] {
    soak_devices devices{for_devices, cluster, x.seed + 2};
    for (auto next = steady::now() + devices.pause(); !over; std::this_thread::sleep_for(std::chrono::milliseconds{20}))
      if (steady::now() >= next) {
        devices.harm_one(); // which may wait for a process that is stopped
        next = steady::now() + devices.pause();
      }
  }};
  std::mt19937_64 chaos{x.seed};
  std::thread events{[&] {
    while (!devices_are_left_alone) {
      cluster.advance(chaos); // while a call waits
      std::this_thread::sleep_for(std::chrono::milliseconds{x.events > 0 ? 2 : 20});
    }
    cluster.calm();
    is_calm.count_down();
    is_judged.wait(); // the processes that this thread has started end with it
  }};
  auto elements = x.events > 0 ? std::vector<uint64_t>{1, 100, 1u << 12, 1u << 15}
                               : std::vector<uint64_t>{1, 1024, 1u << 15, 1u << 19};
  soak_work operations{connection, cluster, x.seed + 1, elements};
  auto& result = operations.so_far();
  auto begun = steady::now();
  auto elapsed = [&] { return duration<double>{steady::now() - begun}.count() / 60; };
  auto is_over = [&] {
    auto so_far = cluster.so_far();
    bool all = so_far.kills + so_far.pauses + so_far.coordinator_kills >= x.events && so_far.device_faults >= x.events
               && result.kinds.size() == collective_kinds().size();
    return x.events > 0 ? all || elapsed() > limit_minutes : elapsed() >= x.minutes;
  };
  memory_watch coordinator{"the coordinator's"}, clients{"the clients'"}; // nodes rarely live for a minute
  for (double told = 0; !is_over();) {
    operations.round();
    coordinator.look(cluster.coordinator_bytes());
    clients.look(own_bytes(::getpid()));
    if (elapsed() >= told + 1) {
      told = elapsed();
      coordinator.minute_ends();
      clients.minute_ends();
      report(result, cluster, told);
    }
  }
  over = true;
  device_events.join(); // a call of it may wait for a coordinator that is killed until it is started again
  devices_are_left_alone = true;
  is_calm.wait();
  const auto [disorder, undecided] = operations.judge_history();
  report(result, cluster, elapsed());
  is_judged.count_down();
  events.join();
  if (!disorder.empty())
    fmt::print("DISORDER: {}\n", disorder);
  if (!undecided.empty())
    fmt::print("UNDECIDED: the calls of communicator {} have more orders than can be tried\n",
               fmt::join(undecided, ", "));
  for (auto& [reason, times] : result.reasons)
    fmt::print("  refused {} times: {}\n", times, reason);
  if (result.unjudged > 0)
    fmt::print("{} operations could not be judged, and are counted neither as right nor as wrong:\n", result.unjudged);
  for (auto& [reason, times] : result.why_unjudged)
    fmt::print("  {} times: {}\n", times, reason);
  for (auto* each : {&coordinator, &clients})
    if (each->grows())
      fmt::print("MEMORY: {} own grows; MiB minute by minute: {}\n", each->whose, fmt::join(each->mebibytes(), " "));
  bool in_time = x.events == 0 || elapsed() <= limit_minutes;
  if (!in_time)
    fmt::print("LATE: not all of that within {} minutes\n", limit_minutes);
  return in_time && disorder.empty() && result.wrong + result.hung + cluster.so_far().lost == 0 && result.right > 0
         && !coordinator.grows() && !clients.grows();
}

} // namespace

int main(int argc, char** argv) {
  auto x = read_settings(argc, argv);
  if (!x) {
    fmt::print(stderr, "usage: soak [--minutes N | --events N] [--seed S] [--nodes N] [--route "
                       "auto|memory|link|messages] [--network-cuts yes|no|auto] [--silence-max SECONDS]\n");
    return 2;
  }
  std::optional<soak_network> network;
  std::string cuts = "no cuts of the network";
  if (x->network_cuts == "yes" || (x->network_cuts == "auto" && x->events == 0)) {
    auto made = soak_network::make(x->nodes);
    if (made) {
      network = std::move(*made);
      cuts = "each node on a network host of its own";
    } else if (x->network_cuts == "yes") {
      fmt::print(stderr, "soak: the network cannot be cut: {}\n", render(made.error()));
      return 1;
    } else {
      cuts += fmt::format(", for {}", render(made.error()));
    }
  }
  auto pace = x->events > 0 ? soak_cluster::pace::fast() : soak_cluster::pace{};
  for (auto* lengths : {&pace.stops, &pace.cuts})
    std::erase_if(*lengths, [&](auto length) { return length > std::chrono::seconds{x->silence_max_s}; });
  soak_cluster cluster{x->nodes, x->route, pace, std::move(network), ::geteuid() == 0};
  fmt::print("seed {}, {} nodes, route {}, {}; logs until the end in {}\n", x->seed, x->nodes, x->route, cuts,
             cluster.logs());
  configuration cfg;
  auto join = fmt::format("--node.join={}", cluster.address());
  if (auto problem = cfg.read({join}, std::nullopt)) {
    fmt::print(stderr, "soak: {}\n", render(problem));
    return 1;
  }
  caf::actor_system system{cfg};
  const auto opts = cfg.values();
  soak_connection connection{system, opts}, for_devices{system, opts};
  for (auto* each : {&connection, &for_devices})
    if (auto problem = each->open()) {
      fmt::print(stderr, "soak: {}\n", render(problem));
      return 1;
    }
  if (run(*x, connection, for_devices, cluster))
    return 0;
  fmt::print("logs and journal stay in {}\n"
             "again: ./run soak --seed {} --nodes {} --route {} --network-cuts {} --silence-max {} {}\n",
             cluster.keep_logs(), x->seed, x->nodes, x->route, x->network_cuts, x->silence_max_s,
             x->events > 0 ? fmt::format("--events {}", x->events) : fmt::format("--minutes {}", x->minutes));
  return 1;
}
