#include "tools/bench/bench_command.hpp"

#include "client/cluster.hpp"
#include "messages/errc.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/schedule/bus_bandwidth.hpp"
#include "runtime/schedule/request_of.hpp"
#include "runtime/selection/written_algorithm.hpp"
#include "runtime/text/json_writer.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/bench/bench.hpp"
#include "tools/bench/bench_group.hpp"
#include "tools/bench/bench_sizes.hpp"
#include "tools/bench/memory_limit.hpp"
#include "tools/console/own_memory.hpp"
#include "tools/options/configured_call.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>

namespace ringmaster {

namespace {

constexpr uint64_t limit_bytes_min = 1u << 20; ///< Less is not a matter of memory.

void print_header(std::FILE* out, const bench_options& x) {
  fmt::print(out, "# {} on {} devices, {}{}, {}, {}\n", name_of(x.kind), x.devices, name_of(x.datatype),
             reduces(x.kind) ? fmt::format(", {}", name_of(x.op)) : "", x.in_place ? "in place" : "out of place",
             x.samples == 1 ? "one sample each" : fmt::format("medians of {} samples", x.samples));
}

void print_columns(std::FILE* out) {
  fmt::print(out, "{:>12} {:>12} {:>12} {:>6} {:>5} {:<18} {:>10} {:>8} {:>8} {:>10} {:>10} {:>6} {:>7}\n", "size",
             "count", "type", "redop", "root", "algorithm", "time", "algbw", "busbw", "p50", "p99", "#wrong", "limit");
  fmt::print(out, "{:>12} {:>12} {:>12} {:>6} {:>5} {:<18} {:>10} {:>8} {:>8} {:>10} {:>10} {:>6} {:>7}\n", "(B)",
             "(elements)", "", "", "", "", "(us)", "(GB/s)", "(GB/s)", "(us)", "(us)", "", "part");
  std::fflush(out);
}

void print_row(std::FILE* out, const bench_options& x, const bench_row& row) {
  fmt::print(out,
             "{:>12} {:>12} {:>12} {:>6} {:>5} {:<18} {:>10.2f} {:>8.2f} {:>8.2f} {:>10.2f} {:>10.2f} {:>6} {:>7}\n",
             row.bytes, row.count, name_of(x.datatype), reduces(x.kind) ? name_of(x.op) : "none",
             has_root(x.kind) ? std::to_string(x.root) : "-1", row.algorithm, row.time_us, row.algbw, row.busbw,
             row.p50_us, row.p99_us, row.wrong,
             row.limit_us == 0 ? "" : fmt::format("{:.2f}", row.limit_us / row.time_us));
  std::fflush(out);
}

caf::error unwritten(const bench_options& x) {
  return make_error(errc::io_error, fmt::format("cannot write the rows '{}': {}", x.json, std::strerror(errno)));
}

/// At once: who measures for an hour should hear in time that the disk is full.
caf::error write_json(std::FILE* to, const bench_options& x, const bench_row& row) {
  json_writer json;
  json.object()
    .member("kind", name_of(x.kind))
    .member("algorithm", row.algorithm)
    .member("devices", x.devices)
    .member("size", row.bytes)
    .member("count", row.count)
    .member("type", name_of(x.datatype))
    .member("redop", reduces(x.kind) ? name_of(x.op) : "none")
    .member("root", has_root(x.kind) ? static_cast<int>(x.root) : -1)
    .member("in_place", x.in_place);
  json.key("time").fixed(row.time_us, 3).key("algbw").rounded(row.algbw, 6).key("busbw").rounded(row.busbw, 6);
  json.member("wrong", row.wrong);
  json.key("p50").fixed(row.p50_us, 3).key("p99").fixed(row.p99_us, 3).key("limit").fixed(row.limit_us, 3).end();
  auto line = json.take() + "\n";
  if (std::fwrite(line.data(), 1, line.size(), to) != line.size() || std::fflush(to) != 0)
    return unwritten(x);
  return caf::none;
}

caf::expected<memory_limit> limit_of(const bench_options& x, const bench_row& row) {
  auto floats = std::max<uint64_t>(row.count * size_of(x.datatype) / sizeof(float), 1);
  auto request = request_of(collective_of(x, floats), x.devices, 0);
  return measure_memory_limit({x.kind, request, x.in_place}, std::max(x.samples / 2, 3u), row.operations);
}

/// Of all rows.
struct mean {
  double sum = 0;
  uint64_t count = 0;

  void add(double x) {
    sum += x;
    ++count;
  }
  double average() const { return count == 0 ? 0 : sum / static_cast<double>(count); }
};

/// Returns how many elements were wrong.
caf::expected<uint64_t> measure_on(bench& group, const bench_options& x, std::FILE* out, std::FILE* json,
                                   mean& bus_bandwidth) {
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
      print_row(out, x, *row);
      bus_bandwidth.add(row->busbw);
      if (json != nullptr)
        if (auto problem = write_json(json, x, *row))
          return problem;
      wrong += row->wrong;
    }
    if (!limit.how.empty())
      fmt::print(out, "# limit: {:.2f} us, {}\n", limit.time_us, limit.how);
  }
  if (auto bytes = own_memory_bytes(); bytes > 0)
    fmt::print(out, "# memory beside the devices' files: {}, {} a device\n", bytes_text(bytes),
               bytes_text(bytes / x.devices));
  return wrong;
}

/// Returns how many elements were wrong.
caf::expected<uint64_t> measure_all(client& user, const bench_options& x, std::FILE* out, std::FILE* json,
                                    mean& bus_bandwidth) {
  bench group{user, x};
  if (auto problem = group.open())
    return problem;
  print_header(out, x);
  if (auto cluster = user.devices())
    fmt::print(out, "{}", placement_text(group.ranks(), *cluster));
  print_columns(out);
  auto wrong = measure_on(group, x, out, json, bus_bandwidth);
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
caf::error take_what_is_there(client& user, bench_options& x, caf::timespan patience, const console& to) {
  auto there = user.devices();
  if (there && x.devices_given && static_cast<uint32_t>(there->devices_size()) < x.devices) {
    fmt::print(to.err, "ringmaster bench: {} here, {} wanted: waits {:.0f} s for the others\n",
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
    fmt::print(to.out, "# up to {}: the devices' memory takes no more\n", bytes_text(x.max_bytes));
  return problem;
}

class bench_call final : public configured_call {
  void declare_options(option_table& table) override { arguments_.add_to(table); }

  caf::error check() override {
    if (is_told("device.count"))
      if (auto problem = arguments_.take_device_count(cfg_.values().device.count))
        return problem;
    auto parsed = arguments_.options();
    if (!parsed)
      return std::move(parsed.error());
    x_ = std::move(*parsed);
    x_.deterministic = x_.deterministic || cfg_.values().communicator.deterministic;
    return caf::none;
  }

  caf::expected<int> run(const console& to) override {
    if (x_.written)
      if (auto problem = register_schedules(x_.algorithm, *x_.written))
        return problem;
    auto opts = cfg_.values();
    opts.device.count = x_.devices;
    opts.device.memory_bytes = memory_for(x_);
    if (opts.log.level == "info")
      opts.log.level = "warn";
    std::FILE* json = nullptr;
    if (!x_.json.empty() && (json = std::fopen(x_.json.c_str(), "w")) == nullptr)
      return unwritten(x_);
    auto wrong = measure(opts, to, json);
    if (json != nullptr && std::fclose(json) != 0 && wrong)
      wrong = unwritten(x_);
    if (!wrong)
      return std::move(wrong.error());
    fmt::print(to.out, "# {}\n# Avg bus bandwidth    : {:.2f}\n",
               *wrong == 0 ? "every result was right" : fmt::format("WRONG: {}", counted(*wrong, "element")),
               bus_bandwidth_.average());
    return *wrong == 0 ? exit_ok : exit_failed;
  }

  /// Returns how many elements were wrong.
  caf::expected<uint64_t> measure(const options& opts, const console& to, std::FILE* json) {
    caf::actor_system system{cfg_};
    auto home = cluster::open(system, opts);
    if (!home)
      return std::move(home.error());
    if (x_.written && !(*home)->root())
      return make_error(errc::invalid_argument, "--schedule: the devices are in other processes, which do not know the "
                                                "file; without caf-run or node.join they are in this one");
    client user{system, (*home)->coordinator(), std::chrono::seconds{60}};
    if (auto problem = (*home)->root() ? wait_for_own(user, x_)
                                       : take_what_is_there(user, x_, opts.node.join_timeout, to))
      return problem;
    return measure_all(user, x_, to.out, json, bus_bandwidth_);
  }

  bench_arguments arguments_;
  bench_options x_;
  mean bus_bandwidth_;
};

} // namespace

tool_command bench_command() {
  return tool_command::of<bench_call>("bench", "how fast collectives are here, in nccl-tests' columns");
}

} // namespace ringmaster
