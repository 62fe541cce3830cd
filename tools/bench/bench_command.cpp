#include "tools/bench/bench_command.hpp"

#include "client/cluster.hpp"
#include "messages/errc.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/schedule/bus_bandwidth.hpp"
#include "runtime/schedule/request_of.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/selection/written_algorithm.hpp"
#include "tools/bench/bench.hpp"
#include "tools/bench/bench_group.hpp"
#include "tools/bench/bench_sizes.hpp"
#include "tools/bench/memory_limit.hpp"
#include "tools/console/own_memory.hpp"
#include "tools/options/program.hpp"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>

namespace ringmaster {

namespace {

constexpr uint64_t limit_bytes_min = 1u << 20; ///< Less is not a matter of memory.

void print_header(const bench_options& x) {
  fmt::print("# {} on {} devices, {}{}, {}, medians of {} samples\n", name_of(x.kind), x.devices, name_of(x.datatype),
             reduces(x.kind) ? fmt::format(", {}", name_of(x.op)) : "", x.in_place ? "in place" : "out of place", x.samples);
}

void print_columns() {
  fmt::print("{:>12} {:>12} {:>12} {:>6} {:>5} {:<18} {:>10} {:>8} {:>8} {:>10} {:>10} {:>6} {:>7}\n", "size", "count",
             "type", "redop", "root", "algorithm", "time", "algbw", "busbw", "p50", "p99", "#wrong", "limit");
  fmt::print("{:>12} {:>12} {:>12} {:>6} {:>5} {:<18} {:>10} {:>8} {:>8} {:>10} {:>10} {:>6} {:>7}\n", "(B)", "(elements)", "",
             "", "", "", "(us)", "(GB/s)", "(GB/s)", "(us)", "(us)", "", "part");
  std::fflush(stdout);
}

void print_row(const bench_options& x, const bench_row& row) {
  fmt::print("{:>12} {:>12} {:>12} {:>6} {:>5} {:<18} {:>10.2f} {:>8.3g} {:>8.3g} {:>10.2f} {:>10.2f} {:>6} {:>7}\n", row.bytes,
             row.count, name_of(x.datatype), reduces(x.kind) ? name_of(x.op) : "none",
             has_root(x.kind) ? std::to_string(x.root) : "-1", row.algorithm, row.time_us, row.algbw, row.busbw, row.p50_us,
             row.p99_us, row.wrong, row.limit_us == 0 ? "" : fmt::format("{:.2f}", row.limit_us / row.time_us));
  std::fflush(stdout);
}

void write_json(std::FILE* to, const bench_options& x, const bench_row& row) {
  fmt::print(to,
             R"({{"kind":"{}","algorithm":"{}","devices":{},"size":{},"count":{},"type":"{}","redop":"{}","root":{},)"
             R"("in_place":{},"time":{:.3f},"algbw":{:.6g},"busbw":{:.6g},"wrong":{},"p50":{:.3f},"p99":{:.3f},"limit":{:.3f}}})"
             "\n",
             name_of(x.kind), row.algorithm, x.devices, row.bytes, row.count, name_of(x.datatype),
             reduces(x.kind) ? name_of(x.op) : "none", has_root(x.kind) ? static_cast<int>(x.root) : -1, x.in_place,
             row.time_us, row.algbw, row.busbw, row.wrong, row.p50_us, row.p99_us, row.limit_us);
}

caf::expected<memory_limit> limit_of(const bench_options& x, const bench_row& row) {
  auto floats = std::max<uint64_t>(row.count * size_of(x.datatype) / sizeof(float), 1);
  auto request = request_of(collective_of(x, floats), x.devices, 0);
  return measure_memory_limit({x.kind, request, x.in_place}, std::max(x.samples / 2, 3u), row.operations);
}

/// Returns how many elements were wrong.
caf::expected<uint64_t> measure_on(bench& group, const bench_options& x, std::FILE* json) {
  uint64_t wrong = 0;
  for (auto bytes : sizes_of(x)) {
    memory_limit limit;
    for (auto& algorithm : algorithms_for(x)) {
      auto row = group.measure(algorithm, bytes);
      if (!row)
        return std::move(row.error());
      if (!x.no_memory_limit && limit.how.empty() && row->bytes * x.devices >= limit_bytes_min) {
        auto measured = limit_of(x, *row);
        if (!measured)
          return std::move(measured.error());
        limit = std::move(*measured);
      }
      row->limit_us = limit.time_us;
      print_row(x, *row);
      if (json != nullptr)
        write_json(json, x, *row);
      wrong += row->wrong;
    }
    if (!limit.how.empty())
      fmt::print("# limit: {:.2f} us, {}\n", limit.time_us, limit.how);
  }
  if (auto bytes = own_memory_bytes(); bytes > 0)
    fmt::print("# memory beside the devices' files: {}, {} a device\n", bytes_text(bytes), bytes_text(bytes / x.devices));
  return wrong;
}

/// Returns how many elements were wrong.
caf::expected<uint64_t> measure_all(client& user, const bench_options& x, std::FILE* json) {
  bench group{user, x};
  if (auto problem = group.open())
    return problem;
  print_header(x);
  if (auto cluster = user.devices())
    fmt::print("{}", placement_text(group.ranks(), *cluster));
  print_columns();
  auto wrong = measure_on(group, x, json);
  auto problem = group.close(); // whatever it came to: the cluster may be others', too
  if (wrong && problem)
    return problem;
  return wrong;
}

/// The devices that this process has started.
caf::error wait_for_own(client& user, const bench_options& x) {
  auto there = user.devices(x.devices, std::chrono::seconds{60});
  return there ? caf::error{} : there.error();
}

/// Of a cluster of other processes. What --devices asks for may be about to join.
caf::error take_what_is_there(client& user, bench_options& x, caf::timespan patience) {
  auto there = user.devices();
  if (there && x.devices_given && static_cast<uint32_t>(there->devices_size()) < x.devices) {
    fmt::print(stderr, "ringmaster: {} here, {} wanted: waits {:.0f} s for the others\n",
               counted(static_cast<uint64_t>(there->devices_size()), "device"), x.devices,
               std::chrono::duration<double>{patience}.count());
    if (user.devices(x.devices, patience))
      there = user.devices();
  }
  if (!there)
    return there.error();
  const auto max_bytes = x.max_bytes;
  auto problem = fit_to_cluster(x, *there);
  if (!problem && x.max_bytes < max_bytes)
    fmt::print("# up to {}: the devices' memory takes no more\n", bytes_text(x.max_bytes));
  return problem;
}

} // namespace

int bench_command(const std::vector<std::string>& args) {
  if (wants_help(args, bench_help))
    return 0;
  configuration cfg;
  if (auto problem = cfg.read(args, "config/caf-application.conf"))
    return report(problem, 2);
  auto x = parse_bench_options(cfg.remainder);
  if (!x)
    return report(x.error(), 2);
  if (x->written)
    if (auto problem = register_schedules(x->algorithm, *x->written))
      return report(problem);
  auto opts = cfg.values();
  opts.device.count = x->devices;
  x->deterministic = x->deterministic || opts.communicator.deterministic;
  opts.device.memory_bytes = memory_for(*x);
  if (opts.log.level == "info")
    opts.log.level = "warn";
  std::FILE* json = nullptr;
  if (!x->json.empty() && (json = std::fopen(x->json.c_str(), "w")) == nullptr)
    return report(make_error(errc::io_error, "cannot write " + x->json));
  caf::actor_system system{cfg};
  auto home = cluster::open(system, opts);
  if (!home)
    return report(home.error());
  if (x->written && !(*home)->root())
    return report(make_error(errc::invalid_argument, "--schedule: the devices are in other processes, which do not know "
                                                     "the file; without caf-run or node.join they are in this one"));
  client user{system, (*home)->coordinator(), std::chrono::seconds{60}};
  if (auto problem = (*home)->root() ? wait_for_own(user, *x) : take_what_is_there(user, *x, opts.node.join_timeout))
    return report(problem);
  auto wrong = measure_all(user, *x, json);
  if (json != nullptr)
    std::fclose(json);
  if (!wrong)
    return report(wrong.error());
  fmt::print("# {}\n", *wrong == 0 ? "every result was right" : fmt::format("{} elements were WRONG", *wrong));
  return *wrong == 0 ? 0 : 1;
}

} // namespace ringmaster
