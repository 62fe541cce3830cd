// How fast all survivors learn of a loss, and how often a process that only pauses is given up. It starts a coordinator
// and nodes on this host, and a communicator over all of their devices.
//
//   build/release/detector build/release/ringmaster [--minutes N] [--rounds N] [--processes N] [--devices N] [--seed N]
//                                                   [--json FILE] [--curve PREFIX]
//
// A loss is known when the communicator has opened the epoch of the survivors: all of them have acknowledged it by
// then. Each of `--rounds` (10) rounds kills, stops or cuts off one process, or lets one device hang, idle and under
// all-reduces. Then processes pause at random, each for up to 500 ms, for `--minutes` (10) in all, while all cores are
// loaded: every device that is given up is a false death. `--curve` does both for several settings and writes
// PREFIX.json and PREFIX.svg; the minutes are divided among them.
#include "actors/configuration/configuration.hpp"
#include "bench/detector/bench_cluster.hpp"
#include "client/client.hpp"
#include "client/cluster.hpp"
#include "runtime/drawing/svg_canvas.hpp"

#include <caf/actor_system.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <optional>
#include <random>

namespace {

using namespace ringmaster;
using namespace ringmaster::bench;
using namespace std::chrono_literals;
using nlohmann::json;
using wall = std::chrono::system_clock;
using steady = std::chrono::steady_clock;

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "detector: {}\n", why);
  std::exit(1);
}

template <class T>
T value_of(caf::expected<T> x) {
  if (!x)
    give_up(render(x.error()));
  return std::move(*x);
}

enum class fault_kind { kill, stop, cut, hang };
constexpr const char* fault_names[] = {"SIGKILL of a process", "SIGSTOP of a process", "silently cut link",
                                       "hung device"};

struct run_options {
  std::string program;
  uint32_t nodes = 8, devices_a_node = 8, rounds = 10;
  double minutes = 10;
  std::string json_file, curve; ///< Empty: none.
  uint64_t seed = 1;
};

/// All-reduces one after the other on a thread of its own, until one is not over all ranks.
class load {
public:
  load(caf::actor_system& system, const coordinator_actor& host, const gpu_sim::CommInitResponse& comm)
    : thread_{[this, &system, host, comm] { run(system, host, comm); }} {}
  ~load() {
    stop_ = true;
    thread_.join();
  }

private:
  void run(caf::actor_system& system, const coordinator_actor& host, const gpu_sim::CommInitResponse& comm) const {
    constexpr uint64_t count = 1 << 13; // 64 KiB a rank
    client user{system, host};
    gpu_sim::AllReduceRingRequest request;
    request.set_commid(comm.commid());
    request.set_count(count);
    for (int rank = 0; rank < comm.devices_size(); ++rank) {
      (*request.mutable_memaddrs())[static_cast<uint32_t>(rank)] = comm.devices(rank).minmemaddr();
      (*request.mutable_outputaddrs())[static_cast<uint32_t>(rank)].set_value(comm.devices(rank).minmemaddr().value()
                                                                              + count * sizeof(double));
    }
    while (!stop_) {
      if (!user.all_reduce_ring(request))
        return;
      const auto status = user.wait(communicator_id{comm.commid()}, 30s);
      if (!status || status->devices_size() != comm.devices_size())
        return;
    }
  }

  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// Processor time of all cores is taken while it lives.
class loaded_cores {
public:
  loaded_cores() {
    for (unsigned i = 0; i < std::max(std::thread::hardware_concurrency(), 1u); ++i)
      threads_.emplace_back([this] {
        while (!stop_)
          ;
      });
  }
  ~loaded_cores() {
    stop_ = true;
    for (auto& each : threads_)
      each.join();
  }

private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

struct detection {
  fault_kind kind = fault_kind::kill;
  bool is_busy = false;
  std::vector<double> ms; ///< Of each round; ascending.

  /// The smallest time that at least this part of the rounds was within.
  double within(double part) const {
    const auto place = static_cast<size_t>(std::ceil(part * static_cast<double>(ms.size())));
    return ms[std::clamp<size_t>(place, 1, ms.size()) - 1];
  }
};

struct pauses_result {
  double minutes = 0;
  uint64_t pauses = 0, losses = 0; ///< Processes of which a device was given up.
};

/// A cluster under measurement, and its client.
class measurement {
public:
  measurement(const run_options& opts, const detector_settings& how)
    : options_(opts), cluster_(opts.program, opts.nodes, opts.devices_a_node, how), random_(opts.seed) {
    if (auto problem = settings_.read({"--log.level=off", "--trust.insecure=true"}, std::nullopt))
      give_up(render(problem));
    system_.emplace(settings_);
    host_ = value_of(connect(*system_, cluster_.where(), 20s));
    user_.emplace(*system_, host_);
  }

  detection detect(fault_kind kind, bool is_busy, uint32_t rounds) {
    detection result{kind, is_busy, {}};
    for (uint32_t i = 0; i < rounds; ++i)
      result.ms.push_back(round(kind, is_busy));
    std::ranges::sort(result.ms);
    return result;
  }

  /// Processes pause at random, nodes and the coordinator, for up to half a second each, while all cores are loaded.
  pauses_result pause_at_random(double minutes, bool is_busy) {
    loaded_cores cores;
    auto comm = make_communicator();
    std::optional<load> work;
    if (is_busy)
      work.emplace(*system_, host_, comm);
    pauses_result result{.minutes = minutes};
    std::vector<victim> all;
    all.push_back({[this] { return cluster_.coordinator(); }});
    for (uint32_t i = 0; i < cluster_.nodes(); ++i)
      all.push_back({[this, i] { return cluster_.node(i); }});
    for (auto& each : all)
      each.next = steady::now() + random_ms(0, 2000);
    const auto end = steady::now() + std::chrono::duration_cast<steady::duration>(60s * minutes);
    auto next_look = steady::now();
    while (steady::now() < end) {
      auto next = std::ranges::min_element(all, {}, &victim::next);
      std::this_thread::sleep_until(std::min(next->next, end));
      next->is_paused = !next->is_paused;
      ::kill(next->process(), next->is_paused ? SIGSTOP : SIGCONT);
      result.pauses += next->is_paused ? 1 : 0;
      next->next = steady::now() + (next->is_paused ? random_ms(1, 500) : random_ms(200, 2000));
      if (steady::now() < next_look || std::ranges::any_of(all, &victim::is_paused))
        continue; // none pauses for longer because of this look
      next_look = steady::now() + 2s;
      if (const auto lost = lost_processes(comm); lost > 0) {
        result.losses += lost;
        for (auto& each : all)
          each.next = steady::now() + 1s;
        work.reset();
        (void)user_->destroy(communicator_id{comm.commid()});
        comm = make_communicator();
        if (is_busy)
          work.emplace(*system_, host_, comm);
        next_look = steady::now() + 2s;
      }
    }
    for (auto& each : all)
      ::kill(each.process(), SIGCONT);
    std::this_thread::sleep_for(2s);
    result.losses += lost_processes(comm);
    work.reset();
    (void)user_->destroy(communicator_id{comm.commid()});
    return result;
  }

private:
  struct victim {
    std::function<pid_t()> process;
    bool is_paused = false;
    steady::time_point next{};
  };

  std::chrono::milliseconds random_ms(int from, int to) {
    return std::chrono::milliseconds{std::uniform_int_distribution<int>{from, to}(random_)};
  }

  gpu_sim::CommInitResponse make_communicator() {
    for (const auto until = steady::now() + 60s; steady::now() < until;) {
      value_of(user_->devices(cluster_.devices(), 60s));
      if (auto made = user_->comm_init(cluster_.devices(), proto::SHRINK)) // a device may be lost just now
        return std::move(*made);
      std::this_thread::sleep_for(100ms);
    }
    give_up("a communicator of all devices could not be made within 60 s");
  }

  uint64_t lost_processes(const gpu_sim::CommInitResponse& comm) {
    const auto status = value_of(user_->status(communicator_id{comm.commid()}));
    const auto lost = comm.devices_size() - status.devices_size();
    const auto each = static_cast<int>(cluster_.devices_a_node());
    return static_cast<uint64_t>((lost + each - 1) / each);
  }

  double round(fault_kind kind, bool is_busy) {
    const auto comm = make_communicator();
    std::optional<load> work;
    if (is_busy)
      work.emplace(*system_, host_, comm);
    std::this_thread::sleep_for(random_ms(500, 1000));
    const auto last = cluster_.nodes() - 1;
    const auto survivors = comm.devices_size()
                           - (kind == fault_kind::hang ? 1 : static_cast<int>(cluster_.devices_a_node()));
    const auto begun = wall::now();
    switch (kind) {
      case fault_kind::kill: ::kill(cluster_.node(last), SIGKILL); break;
      case fault_kind::stop: ::kill(cluster_.node(last), SIGSTOP); break;
      case fault_kind::cut: cluster_.link().cut(); break;
      case fault_kind::hang: {
        proto::FaultRequest hang;
        hang.set_kind(proto::FaultRequest::HANG);
        if (auto problem = user_->inject(device_id{comm.devices(comm.devices_size() / 2).deviceid().value()}, hang))
          give_up(render(problem));
      }
    }
    const communicator_id id{comm.commid()};
    while (value_of(user_->status(id)).devices_size() != survivors) {
      if (wall::now() - begun > 60s)
        give_up(fmt::format("a {} was not noticed within 60 s", fault_names[static_cast<int>(kind)]));
      std::this_thread::sleep_for(5ms);
    }
    work.reset();
    const auto known = time_known(id, survivors);
    (void)user_->destroy(id);
    cluster_.link().mend();
    if (kind != fault_kind::hang) // its supervisor has started another device
      cluster_.restart_node(last);
    return std::chrono::duration<double, std::milli>(known - begun.time_since_epoch()).count();
  }

  /// When the communicator opened the epoch of the survivors, which all of them had acknowledged by then: wall clock.
  std::chrono::nanoseconds time_known(communicator_id id, int survivors) {
    constexpr uint32_t records_max = 100'000;
    if (auto problem = user_->journal_flush())
      give_up(render(problem));
    for (auto& record : value_of(user_->journal_tail(records_max)))
      if (auto& epoch = record.epoch_opened(); record.has_epoch_opened() && epoch.comm_id() == id.value
                                               && epoch.epoch() > 1 && epoch.device_ids_size() == survivors)
        return std::chrono::nanoseconds{record.time_ns()};
    give_up("the journal has no record of the survivors' epoch");
  }

  run_options options_;
  bench_cluster cluster_;
  std::mt19937_64 random_;
  configuration settings_;
  std::optional<caf::actor_system> system_;
  coordinator_actor host_;
  std::optional<client> user_;
};

json json_of(const detection& x) {
  return {{"fault", fault_names[static_cast<int>(x.kind)]},
          {"traffic", x.is_busy ? "busy" : "idle"},
          {"rounds", x.ms.size()},
          {"p50_ms", x.within(0.5)},
          {"p99_ms", x.within(0.99)},
          {"ms", x.ms}};
}

json json_of(const pauses_result& x) {
  return {{"minutes", x.minutes}, {"pauses", x.pauses}, {"false_deaths", x.losses}};
}

json measure(const run_options& opts) {
  measurement of{opts, {}};
  json detections = json::array(), pauses = json::array();
  fmt::print("# {} processes of {} devices, one communicator of {} ranks; seen by all survivors after\n", opts.nodes,
             opts.devices_a_node, opts.nodes * opts.devices_a_node);
  fmt::print("{:<22} {:<5} {:>6} {:>8} {:>8}\n", "fault", "", "rounds", "p50 ms", "p99 ms");
  for (auto kind : {fault_kind::kill, fault_kind::stop, fault_kind::cut, fault_kind::hang})
    for (bool is_busy : {false, true}) {
      const auto x = of.detect(kind, is_busy, opts.rounds);
      fmt::print("{:<22} {:<5} {:>6} {:>8.0f} {:>8.0f}\n", fault_names[static_cast<int>(kind)],
                 is_busy ? "busy" : "idle", x.ms.size(), x.within(0.5), x.within(0.99));
      std::fflush(stdout);
      detections.push_back(json_of(x));
    }
  for (bool is_busy : {false, true}) {
    const auto x = of.pause_at_random(opts.minutes / 2, is_busy);
    fmt::print("# {}, all cores loaded: {} pauses of up to 500 ms in {:.1f} minutes, {} false deaths\n",
               is_busy ? "busy" : "idle", x.pauses, x.minutes, x.losses);
    std::fflush(stdout);
    auto& row = pauses.emplace_back(json_of(x));
    row["traffic"] = is_busy ? "busy" : "idle";
  }
  return {{"detections", detections}, {"pauses", pauses}};
}

struct curve_point {
  detector_settings how;
  double detected_ms = 0; ///< p99 of both faults.
  double false_deaths_per_hour = 0;
};

std::string name_of(const detector_settings& x) {
  return fmt::format("pause-max {} ms, late-after {} ms, {} of {}", x.pause_max.count(), x.late_after.count(), x.late,
                     x.window);
}

std::string picture_of(const std::vector<curve_point>& points) {
  constexpr double width = 900, height = 460, left = 70, right = 330, top = 50, bottom = 50;
  double last_ms = 0, most = 1;
  for (auto& x : points) {
    last_ms = std::max(last_ms, x.detected_ms);
    most = std::max(most, x.false_deaths_per_hour);
  }
  last_ms *= 1.1;
  const auto across = [&](double ms) { return left + ms / last_ms * (width - left - right); };
  const auto down = [&](double deaths) { return height - bottom - deaths / most * (height - top - bottom) * 0.95; };
  svg_canvas canvas;
  using anchor = svg_canvas::anchor;
  canvas.text(left, 22, 16, "Time until an idle loss is known, against false deaths", anchor::start, svg_canvas::ink,
              true);
  canvas.line(left, height - bottom, width - right, height - bottom, {.colour = svg_canvas::ink});
  canvas.line(left, height - bottom, left, top, {.colour = svg_canvas::ink});
  for (double ms = 0, step = axis_tick(last_ms); ms <= last_ms; ms += step)
    canvas.text(across(ms), height - bottom + 14, 11, fmt::format("{:.1f} s", ms / 1000), anchor::middle,
                svg_canvas::ink, false);
  for (double deaths = 0, step = axis_tick(most); deaths <= most; deaths += step)
    canvas.text(left - 8, down(deaths), 11, fmt::format("{:g}", deaths), anchor::end, svg_canvas::ink, false);
  canvas.text(left, top - 10, 11, "false deaths an hour, of pauses up to 500 ms", anchor::start, svg_canvas::ink,
              false);
  canvas.text(width - right, height - 16, 11, "p99 of SIGSTOP and hung device", anchor::end, svg_canvas::ink, false);
  for (size_t i = 0; i < points.size(); ++i) {
    const auto colour = distinct_colour(static_cast<uint32_t>(i), static_cast<uint32_t>(points.size()));
    canvas.circle(across(points[i].detected_ms), down(points[i].false_deaths_per_hour), 5, colour,
                  {.colour = svg_canvas::ink});
    const auto line = top + 18 * static_cast<double>(i);
    canvas.circle(width - right + 24, line, 5, colour, {.colour = svg_canvas::ink});
    canvas.text(width - right + 36, line, 11, name_of(points[i].how), anchor::start, svg_canvas::ink, false);
  }
  return canvas.finish(width, height);
}

json measure_curve(const run_options& opts) {
  std::vector<detector_settings> all;
  for (auto pause_max : {500ms, 750ms, 1000ms, 1500ms, 2500ms})
    all.push_back({.pause_max = pause_max});
  for (auto late_after : {200ms, 300ms, 1000ms})
    all.push_back({.late_after = late_after});
  all.push_back({.late = 2});
  all.push_back({.late = 5});
  std::vector<curve_point> points;
  json rows = json::array();
  for (auto& how : all) {
    measurement of{opts, how};
    const auto stop = of.detect(fault_kind::stop, false, opts.rounds),
               hang = of.detect(fault_kind::hang, false, opts.rounds);
    const auto each = opts.minutes / static_cast<double>(2 * all.size());
    const auto idle = of.pause_at_random(each, false), busy = of.pause_at_random(each, true);
    const auto deaths = static_cast<double>(idle.losses + busy.losses);
    points.push_back({how, std::max(stop.within(0.99), hang.within(0.99)), deaths / (2 * each) * 60});
    fmt::print("{}: SIGSTOP {:.0f} ms, hung device {:.0f} ms (p99 of {}, idle); {} pauses, {} false deaths\n",
               name_of(how), stop.within(0.99), hang.within(0.99), opts.rounds, idle.pauses + busy.pauses, deaths);
    std::fflush(stdout);
    rows.push_back({{"late_after_ms", how.late_after.count()},
                    {"pause_max_ms", how.pause_max.count()},
                    {"late", how.late},
                    {"window", how.window},
                    {"detections", {json_of(stop), json_of(hang)}},
                    {"pauses", {{"idle", json_of(idle)}, {"busy", json_of(busy)}}},
                    {"false_deaths_per_hour", points.back().false_deaths_per_hour}});
  }
  std::ofstream{opts.curve + ".svg"} << picture_of(points);
  return {{"curve", rows}};
}

run_options parse(int argc, char** argv) {
  constexpr auto usage = "usage: detector RINGMASTER [--minutes N] [--rounds N] [--processes N] [--devices N] "
                         "[--seed N] [--json FILE] [--curve PREFIX]";
  run_options result;
  if (argc < 2)
    give_up(usage);
  result.program = argv[1];
  for (int i = 2; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc)
      give_up(fmt::format("{} needs a value; {}", name, usage));
    const std::string value = argv[i + 1];
    const auto number = std::atof(value.c_str());
    if (name == "--json")
      result.json_file = value;
    else if (name == "--curve")
      result.curve = value;
    else if (!(number > 0))
      give_up(fmt::format("{} is {}; it must be a number above 0", name, value));
    else if (name == "--minutes")
      result.minutes = number;
    else if (name == "--rounds")
      result.rounds = static_cast<uint32_t>(number);
    else if (name == "--processes")
      result.nodes = static_cast<uint32_t>(number);
    else if (name == "--devices")
      result.devices_a_node = static_cast<uint32_t>(number);
    else if (name == "--seed")
      result.seed = static_cast<uint64_t>(number);
    else
      give_up(fmt::format("there is no option {}; {}", name, usage));
  }
  if (result.nodes < 3)
    give_up("--processes is below 3: if half of the devices fall silent at once, none is given up");
  return result;
}

} // namespace

int main(int argc, char** argv) {
  const auto opts = parse(argc, argv);
  const auto result = opts.curve.empty() ? measure(opts) : measure_curve(opts);
  const auto file = opts.json_file.empty() && !opts.curve.empty() ? opts.curve + ".json" : opts.json_file;
  if (!file.empty())
    std::ofstream{file} << result.dump(1) << '\n';
}
