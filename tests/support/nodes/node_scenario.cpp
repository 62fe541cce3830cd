#include "tests/support/nodes/node_scenario.hpp"

#include "runtime/algorithms/registry.hpp"
#include "runtime/schedule/request_of.hpp"

#include <algorithm>
#include <caf/send.hpp>
#include <fmt/format.h>
#include <iterator>
#include <numeric>

namespace ringmaster::test {

namespace {

using namespace std::chrono_literals;

class drawer {
public:
  explicit drawer(uint64_t seed) : random_(seed) {}

  uint64_t below(uint64_t n) { return random_() % n; }
  bool one_in(uint64_t n) { return below(n) == 0; }
  /// Any order of magnitude is as likely as another.
  caf::timespan time_up_to(caf::timespan limit) {
    auto whole = static_cast<uint64_t>(limit.count()) >> below(14);
    return caf::timespan{static_cast<int64_t>(below(whole) + 1)};
  }

private:
  std::mt19937_64 random_;
};

nodes_options draw_cluster(drawer& draw, uint64_t seed) {
  nodes_options x;
  x.seed = seed;
  x.devices.resize(2 + (draw.one_in(3) ? 1 + draw.below(2) : 0));
  for (auto& devices : x.devices)
    devices = static_cast<uint32_t>(1 + draw.below(3));
  x.slice_bytes = 8 * (4 + draw.below(60));
  x.one_host = draw.one_in(3);
  constexpr proto::FailurePolicy policies[] = {proto::SHRINK, proto::SHRINK, proto::REPLACE, proto::ABORT};
  x.policy = policies[draw.below(std::size(policies))];
  x.network.delay = draw.time_up_to(200us);
  x.network.spread = draw.one_in(3) ? caf::timespan{0} : draw.time_up_to(2ms);
  x.network.late_per_mille = draw.one_in(3) ? 20 : 0;
  x.turn = draw.one_in(4) ? 20us : 1us;
  return x;
}

collective_options draw_operation(drawer& draw, uint32_t ranks) {
  collective_options x;
  do {
    auto& algorithm = algorithms()[draw.below(algorithms().size())];
    x.kind = algorithm.kind;
    x.algorithm = draw.one_in(4) ? "auto" : algorithm.name;
  } while (x.kind == proto::SEND_RECV && ranks == 1);
  x.ranks = ranks;
  x.count = draw.below(has_v_variant(x.kind) ? 12 : 60);
  x.root = static_cast<uint32_t>(draw.below(ranks));
  x.peer = (x.root + 1) % ranks;
  x.chunk = 4;
  x.in_place = draw.one_in(2);
  if (has_v_variant(x.kind) && draw.one_in(3)) {
    auto even = x;
    std::vector<uint64_t> drawn;
    for (uint32_t i = 0; i < 2 * ranks; ++i)
      drawn.push_back(draw.below(6));
    for (uint32_t a = 0; a < ranks; ++a)
      for (uint32_t b = 0; b < (x.kind == proto::ALL_TO_ALL ? ranks : 1); ++b)
        x.counts.push_back(drawn[a + b]); // alike in both directions, as in place they must be
    if (x.algorithm != "auto" && !plan(x.kind, x.algorithm, request_of(collective_of(x), ranks, 0)))
      return even;
  }
  return x;
}

proto::FaultRequest draw_fault(drawer& draw) {
  proto::FaultRequest result;
  result.set_kind(static_cast<proto::FaultRequest::Kind>(draw.below(3)));
  result.set_at_step(draw.one_in(2));
  result.set_step(static_cast<uint32_t>(draw.below(8)));
  result.set_delay_ns(draw.one_in(2) ? 5'000'000 : 5'000'000'000);
  if (result.kind() == proto::FaultRequest::HANG && draw.one_in(2))
    result.set_delay_ns(0); // for good
  return result;
}

mishap draw_mishap(drawer& draw, const node_scenario& x) {
  using kind = mishap::kind;
  constexpr kind kinds[] = {kind::pause, kind::pause, kind::stall, kind::stall,       kind::cut,
                            kind::cut,   kind::cut,   kind::kill,  kind::device_fault};
  auto processes = x.cluster.devices.size() + 1;
  mishap result;
  result.what = kinds[draw.below(std::size(kinds))];
  result.when = draw.time_up_to(30ms);
  result.lasts = draw.one_in(3) ? caf::timespan{0} : draw.time_up_to(draw.one_in(3) ? 40s : 800ms);
  if (result.what == kind::device_fault) {
    result.a = draw.below(x.ranks);
    result.fault = draw_fault(draw);
    return result;
  }
  bool among_nodes = draw.below(4) != 0 || result.what == kind::kill;
  result.a = among_nodes ? 1 + draw.below(processes - 1) : 0;
  do
    result.b = 1 + draw.below(processes - 1);
  while (result.b == result.a);
  if (result.what == kind::cut && draw.one_in(2))
    result.lag = draw.time_up_to(15s);
  if (result.a == 0 && result.what == kind::pause && (result.lasts.count() == 0 || result.lasts > 8s))
    result.lasts = 8s; // for longer than a request's limit even a call that it could answer is refused
  return result;
}

/// Up to four devices die, hang or are slow, one soon after another.
std::vector<mishap> draw_harmed_devices(drawer& draw, uint32_t ranks) {
  std::vector<mishap> result(1 + draw.below(4));
  for (auto& x : result) {
    x.what = draw.one_in(2) ? mishap::kind::device_death : mishap::kind::device_fault;
    x.a = draw.below(ranks);
    x.when = draw.time_up_to(30ms);
    if (x.what == mishap::kind::device_fault)
      x.fault = draw_fault(draw);
  }
  return result;
}

} // namespace

node_scenario node_scenario_of(uint64_t seed) {
  drawer draw{seed};
  node_scenario x;
  x.cluster = draw_cluster(draw, seed);
  auto devices = std::accumulate(x.cluster.devices.begin(), x.cluster.devices.end(), uint32_t{0});
  x.ranks = std::max<uint32_t>(1, devices - static_cast<uint32_t>(draw.below(3)));
  for (auto n = 1 + draw.below(4); n > 0; --n) {
    x.operations.push_back(draw_operation(draw, x.ranks));
    x.pauses.push_back(draw.one_in(2) ? caf::timespan{0} : draw.time_up_to(20ms));
  }
  x.in_group = draw.one_in(3);
  if (draw.one_in(3))
    x.apart = draw.time_up_to(20ms);
  for (auto n = draw.below(4); n > 0; --n)
    x.mishaps.push_back(draw_mishap(draw, x));
  // Every second seed harms single devices as well, half of these nothing else. What the others draw stays as it was.
  if (seed % 2 == 0) {
    x.cluster.eager_bytes = draw.one_in(2) ? 0 : 8 * draw.below(60);
    if (seed % 4 == 0)
      x.mishaps.clear();
    auto harmed = draw_harmed_devices(draw, x.ranks);
    x.mishaps.insert(x.mishaps.end(), harmed.begin(), harmed.end());
  }
  return x;
}

node_scenario restart_scenario_of(uint64_t seed) {
  auto x = node_scenario_of(seed);
  drawer draw{seed + 1'000'000};
  x.cluster.restarts = true;
  x.mishaps.clear();
  caf::timespan when{0};
  for (auto n = 1 + draw.below(3); n > 0; --n) {
    mishap restart;
    restart.what = mishap::kind::restart;
    when += draw.time_up_to(30ms);
    restart.when = when;
    restart.lasts = draw.time_up_to(400ms);
    when += restart.lasts + draw.time_up_to(4s);
    x.mishaps.push_back(restart);
  }
  if (draw.one_in(3)) {
    mishap death;
    death.what = draw.one_in(2) ? mishap::kind::device_death : mishap::kind::kill;
    death.when = draw.time_up_to(500ms);
    death.a = death.what == mishap::kind::kill ? 1 + draw.below(x.cluster.devices.size()) : draw.below(x.ranks);
    x.mishaps.push_back(death);
  }
  return x;
}

node_scenario leader_scenario_of(uint64_t seed) {
  auto x = node_scenario_of(seed);
  drawer draw{seed + 2'000'000};
  x.cluster.standby = true;
  x.cluster.disk_time_max = 2ms;
  x.mishaps.clear();
  caf::timespan when{0};
  for (auto n = 1 + draw.below(2); n > 0; --n) {
    constexpr mishap::kind kinds[] = {mishap::kind::pause, mishap::kind::pause, mishap::kind::pause,
                                      mishap::kind::store_cut, mishap::kind::restart};
    mishap change;
    change.what = kinds[draw.below(std::size(kinds))];
    when += draw.time_up_to(30ms);
    change.when = when;
    change.lasts = 500ms + draw.time_up_to(6s);
    if (change.what != mishap::kind::restart && draw.one_in(2)) { // what it has said last is under way for long
      mishap stall;
      stall.what = mishap::kind::stall;
      stall.b = 1 + draw.below(x.cluster.devices.size());
      stall.when = std::max<caf::timespan>(when - draw.time_up_to(2ms), caf::timespan{0});
      stall.lasts = 2s + draw.time_up_to(4s);
      x.mishaps.push_back(stall);
    }
    x.mishaps.push_back(change);
    when += 3s + draw.time_up_to(6s);
  }
  if (draw.one_in(2)) {
    auto harmed = draw_harmed_devices(draw, x.ranks);
    for (auto& each : harmed)
      each.when = draw.time_up_to(5s);
    x.mishaps.insert(x.mishaps.end(), harmed.begin(), harmed.end());
  }
  if (draw.one_in(4)) {
    mishap death;
    death.what = mishap::kind::kill;
    death.when = draw.time_up_to(5s);
    death.a = 1 + draw.below(x.cluster.devices.size());
    x.mishaps.push_back(death);
  }
  return x;
}

bool node_scenario::is_mild() const {
  if (cluster.standby)
    return false;
  caf::timespan silent{0};
  for (auto& x : mishaps) {
    bool for_good = x.lasts.count() == 0;
    bool with_coordinator = x.a == 0 || x.what == mishap::kind::pause;
    if (x.what == mishap::kind::kill || x.what == mishap::kind::device_fault || x.what == mishap::kind::device_death
        || x.what == mishap::kind::restart || x.what == mishap::kind::store_cut
        || (x.what == mishap::kind::cut && with_coordinator) || (for_good && with_coordinator))
      return false;
    silent += x.what == mishap::kind::pause && x.a == 0 ? caf::timespan{0} : x.lasts;
  }
  return silent < 800ms;
}

bool node_scenario::may_lose_devices() const {
  return std::ranges::any_of(mishaps, [&](auto& x) {
    const bool is_of_leader = cluster.standby && x.a == 0;
    return x.what != mishap::kind::restart && x.what != mishap::kind::store_cut
           && (!is_of_leader || x.what == mishap::kind::device_fault || x.what == mishap::kind::device_death);
  });
}

bool node_scenario::may_end(size_t process) const {
  caf::timespan silent{0}; // to the coordinator, or it to the process
  for (auto& x : mishaps) {
    bool between = x.what == mishap::kind::cut || x.what == mishap::kind::stall;
    bool concerns = between ? x.a == 0 && x.b == process : x.a == 0 || x.a == process;
    if (x.what == mishap::kind::device_fault || x.what == mishap::kind::device_death || x.what == mishap::kind::restart
        || x.what == mishap::kind::store_cut || !concerns || (cluster.standby && x.a == 0))
      continue; // with a standby, nodes go to the successor
    if (x.what == mishap::kind::kill || x.what == mishap::kind::cut || x.lasts.count() == 0)
      return true;
    silent += x.lasts;
  }
  return silent > 18s; // the connection's limit, less what a heartbeat may be late
}

std::string node_scenario::text() const {
  constexpr const char* names[] = {"pause",        "stall",   "cut",          "kill",
                                   "device fault", "restart", "device death", "cut from etcd"};
  std::string result = fmt::format("{} ranks, policy {}, {}, called by {}{}\n", ranks,
                                   proto::FailurePolicy_Name(cluster.policy),
                                   cluster.one_host ? "one host" : "several hosts",
                                   ranks_call() ? "its ranks" : "the host", in_group ? " in a group" : "");
  for (size_t i = 0; i < cluster.devices.size(); ++i)
    result += fmt::format("{}: {} devices\n", simulated_nodes::name_of(i + 1), cluster.devices[i]);
  for (auto& x : operations)
    result += text_of(x) + "\n";
  for (auto& x : mishaps)
    result += fmt::format("after {} us: {} of {} and {} for {} us, lag {} us {}\n", x.when.count() / 1000,
                          names[static_cast<int>(x.what)], x.a, x.b, x.lasts.count() / 1000, x.lag.count() / 1000,
                          x.fault.ShortDebugString());
  return result;
}

namespace {

/// The processes that it concerns are those of the moment when it happens: a coordinator may have a successor
/// meanwhile.
void happen(simulated_nodes& cluster, const mishap& x, const std::vector<uint64_t>& devices) {
  using kind = mishap::kind;
  const auto then = [&](std::function<void()> what) {
    if (x.lasts.count() > 0)
      cluster.later(x.lasts, std::move(what));
  };
  auto& a = cluster.process(x.what == kind::device_fault || x.what == kind::device_death ? 0 : x.a);
  switch (x.what) {
    case kind::kill: return cluster.kill(a);
    case kind::pause: cluster.pause(x.a); return then([&cluster, &a] { cluster.resume(a); });
    case kind::stall:
    case kind::cut:
      if (x.what == kind::stall)
        cluster.stall(x.a, x.b);
      else
        cluster.cut(x.a, x.b, x.lag);
      return then([&cluster, &a, &b = cluster.process(x.b)] { cluster.heal(a, b); });
    case kind::restart:
      cluster.kill(a);
      if (!cluster.options.standby)
        then([&cluster] { cluster.restart_coordinator(); });
      return;
    case kind::store_cut: return cluster.cut_from_store(x.lasts);
    case kind::device_death: return cluster.kill_device(devices[x.a]);
    case kind::device_fault: return cluster.fault_later(devices[x.a], x.fault);
  }
}

} // namespace

void let_happen(simulated_nodes& cluster, const node_scenario& x, const std::vector<uint64_t>& devices) {
  for (auto& what : x.mishaps)
    cluster.later(what.when, [&cluster, what, devices] { happen(cluster, what, devices); });
}

} // namespace ringmaster::test
