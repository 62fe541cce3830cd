#include "tools/bench/bench_report.hpp"

#include "runtime/reduction/reduction.hpp"
#include "runtime/schedule/bus_bandwidth.hpp"
#include "runtime/text/json/json_writer.hpp"

#include <fmt/format.h>

namespace ringmaster {

void print_header(std::FILE* out, const bench_options& x, const rank_layout& layout) {
  fmt::print(out, "# {} on {} devices, {}{}, {}, {}\n", name_of(x.kind), x.devices, name_of(x.datatype),
             reduces(x.kind) ? fmt::format(", {}", name_of(x.op)) : "",
             fmt::format("{}{}", x.in_place ? "in place" : "out of place", x.uneven ? ", uneven" : ""),
             x.samples == 1 ? "one sample each" : fmt::format("medians of {} samples", x.samples));
  fmt::print(out, "# {}\n", layout.summary());
  for (auto& node : layout.nodes())
    fmt::print(out, "# {}\n", node);
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

std::string json_row(const bench_options& x, const bench_row& row, const rank_layout& layout) {
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
    .member("in_place", x.in_place)
    .member("uneven", x.uneven);
  json.key("time").fixed(row.time_us, 3).key("algbw").rounded(row.algbw, 6).key("busbw").rounded(row.busbw, 6);
  json.member("wrong", row.wrong);
  json.key("p50").fixed(row.p50_us, 3).key("p99").fixed(row.p99_us, 3).key("limit").fixed(row.limit_us, 3);
  auto processes = static_cast<double>(std::max<size_t>(layout.nodes().size(), 1));
  json.key("control_messages").rounded(row.control_messages / processes, 3); // a node and operation
  json.member("layout", layout.summary()).list("ranks");
  for (size_t rank = 0; rank < layout.ranks().size(); ++rank) {
    auto& lies = layout.ranks()[rank];
    json.object().member("rank", rank).member("device", lies.device.value);
    json.member("node", lies.node_name).member("host", lies.host).end();
  }
  return json.end().end().take();
}

} // namespace ringmaster
