#include "tools/bench/bench_report.hpp"

#include "runtime/reduction/reduction.hpp"
#include "runtime/schedule/bus_bandwidth.hpp"
#include "runtime/text/json_field.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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
  const auto to_ns = [](double us) { return std::round(us * 1000) / 1000; };
  const auto processes = static_cast<double>(std::max<size_t>(layout.nodes().size(), 1));
  json_value ranks = json_value::array();
  for (size_t rank = 0; rank < layout.ranks().size(); ++rank) {
    auto& lies = layout.ranks()[rank];
    ranks.push_back({{"rank", rank}, {"device", lies.device.value}, {"node", lies.node_name}, {"host", lies.host}});
  }
  return json_text({{"kind", name_of(x.kind)},
                    {"algorithm", row.algorithm},
                    {"devices", x.devices},
                    {"size", row.bytes},
                    {"count", row.count},
                    {"type", name_of(x.datatype)},
                    {"redop", reduces(x.kind) ? name_of(x.op) : "none"},
                    {"root", has_root(x.kind) ? static_cast<int>(x.root) : -1},
                    {"in_place", x.in_place},
                    {"uneven", x.uneven},
                    {"time", to_ns(row.time_us)},
                    {"algbw", rounded(row.algbw, 6)},
                    {"busbw", rounded(row.busbw, 6)},
                    {"wrong", row.wrong},
                    {"p50", to_ns(row.p50_us)},
                    {"p99", to_ns(row.p99_us)},
                    {"limit", to_ns(row.limit_us)},
                    {"control_messages", rounded(row.control_messages / processes, 3)}, // of a node and operation
                    {"layout", layout.summary()},
                    {"ranks", std::move(ranks)}});
}

} // namespace ringmaster
