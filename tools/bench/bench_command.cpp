#include "tools/bench/bench_command.hpp"

#include "client/cluster.hpp"
#include "messages/errc.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/schedule/bus_bandwidth.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/selection/written_algorithm.hpp"
#include "tools/bench/bench.hpp"
#include "tools/bench/memory_limit.hpp"
#include "tools/console/own_memory.hpp"
#include "tools/options/program.hpp"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>

namespace ringmaster {

namespace {

constexpr uint64_t limit_bytes_min = 1u << 20; ///< Less is not a matter of memory.

std::vector<std::string> algorithms_for(const bench_options& x) {
  if (x.algorithm != "all")
    return {x.algorithm};
  std::vector<std::string> result;
  for (auto& known : algorithms())
    if (known.kind == x.kind)
      result.emplace_back(known.name);
  return result;
}

std::vector<uint64_t> sizes_of(const bench_options& x) {
  std::vector<uint64_t> result;
  for (auto bytes = x.min_bytes; bytes <= x.max_bytes; bytes *= x.factor) {
    result.push_back(bytes);
    if (x.kind == proto::BARRIER || bytes == 0)
      break;
  }
  return result;
}

/// Bytes of scratch that a file's schedules want at the largest size, at the rank that wants most.
uint64_t written_scratch(const bench_options& x) {
  if (!x.written)
    return 0;
  uint64_t elements = 0;
  for (const auto& rank : x.written->ranks)
    elements = std::max(elements, rank.scratch_count);
  auto own = size_count(x.kind, x.written->request) * size_of(x.datatype);
  return elements * size_of(x.datatype) * (own == 0 ? 1 : x.max_bytes / own);
}

/// Bytes of scratch that the algorithms want at the largest size, and the shadow of an output that lies on its input.
uint64_t planned_scratch(const bench_options& x) {
  if (x.written)
    return 0;
  const auto element = size_of(x.datatype);
  plan_request request{.world_size = x.devices, .count = count_for_size(x.kind, x.devices, x.max_bytes / element), .root = x.root,
                       .peer = x.peer, .chunk = x.chunk_count};
  const auto* together = first_served_together(x.kind); // what "auto" is where the scratch is this process's
  uint64_t scratch = 0, output = 0;
  for (uint32_t rank = 0; rank < x.devices; rank += x.devices > 64 ? 61 : 1) { // of many, some
    request.rank = rank;
    output = std::max(output, output_count(x.kind, request, rank));
    for (auto& algorithm : algorithms_for(x))
      if (auto planned = plan(x.kind, algorithm == "auto" && together ? together->name : algorithm, request))
        scratch = std::max(scratch, planned->scratch_count);
  }
  return (scratch + output) * element;
}

/// Of one device: its input and output at the largest size, with room to align them, and scratch.
uint64_t memory_for(const bench_options& x) {
  auto whole = x.max_bytes; // the largest of both sides, whatever the kind, but for blocks that are counted once a rank
  if (x.kind == proto::ALL_GATHER || x.kind == proto::GATHER || x.kind == proto::SCATTER || x.kind == proto::ALL_TO_ALL
      || x.kind == proto::REDUCE_SCATTER)
    whole += 64u * x.devices;
  auto buffers = x.deterministic ? x.devices + 2u : 2u; // the scratch area is as large, for everybody's contributions
  return std::max(buffers * whole + written_scratch(x), planned_scratch(x)) + 65536;
}

void print_header(const bench_options& x) {
  fmt::print("# {} on {} devices, {}{}, {}, medians of {} samples\n", name_of(x.kind), x.devices, name_of(x.datatype),
             reduces(x.kind) ? fmt::format(", {}", name_of(x.op)) : "", x.in_place ? "in place" : "out of place", x.samples);
  fmt::print("{:>12} {:>12} {:>12} {:>6} {:>5} {:<18} {:>10} {:>8} {:>8} {:>10} {:>10} {:>6} {:>7}\n", "size", "count",
             "type", "redop", "root", "algorithm", "time", "algbw", "busbw", "p50", "p99", "#wrong", "limit");
  fmt::print("{:>12} {:>12} {:>12} {:>6} {:>5} {:<18} {:>10} {:>8} {:>8} {:>10} {:>10} {:>6} {:>7}\n", "(B)", "(elements)", "",
             "", "", "", "(us)", "(GB/s)", "(GB/s)", "(us)", "(us)", "", "part");
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
  plan_request request{.world_size = x.devices, .count = floats, .root = x.root, .peer = x.peer};
  return measure_memory_limit({x.kind, request, x.in_place}, std::max(x.samples / 2, 3u), row.operations);
}

/// Returns how many elements were wrong.
caf::expected<uint64_t> measure_all(client& user, const bench_options& x, std::FILE* json) {
  bench group{user, x};
  if (auto problem = group.open())
    return problem;
  print_header(x);
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
  if (auto problem = group.close())
    return problem;
  return wrong;
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
  if (auto there = user.devices(x->devices, std::chrono::seconds{60}); !there)
    return report(there.error());
  auto wrong = measure_all(user, *x, json);
  if (json != nullptr)
    std::fclose(json);
  if (!wrong)
    return report(wrong.error());
  fmt::print("# {}\n", *wrong == 0 ? "every result was right" : fmt::format("{} elements were WRONG", *wrong));
  return *wrong == 0 ? 0 : 1;
}

} // namespace ringmaster
