#include "tools/bench/bench_report.hpp"

#include "runtime/reduction/reduction.hpp"
#include "runtime/schedule/bus_bandwidth.hpp"
#include "runtime/text/json_field.hpp"
#include "runtime/text/pages/wrapped_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ringmaster {

bench_table::bench_table(const bench_options& x, const page_format& page)
  : options_(x), page_(page), table_({{{"size", "(B)"}, 12},
                                      {{"count", "(elements)"}, 12, text_side::right, 7},
                                      {{"type", ""}, 12, text_side::right, 3},
                                      {{"redop", ""}, 6, text_side::right, 2},
                                      {{"root", ""}, 5, text_side::right, 1},
                                      {{"algorithm", ""}, 18, text_side::left},
                                      {{"time", "(us)"}, 10},
                                      {{"algbw", "(GB/s)"}, 8, text_side::right, 8},
                                      {{"busbw", "(GB/s)"}, 8},
                                      {{"p50", "(us)"}, 10, text_side::right, 4},
                                      {{"p99", "(us)"}, 10, text_side::right, 5},
                                      {{"#wrong", ""}, 6},
                                      {{"limit", "part"}, 7, text_side::right, 6}},
                                     page) {}

std::string bench_table::head(const rank_layout& layout) const {
  auto& x = options_;
  auto text = remark(fmt::format(
    "{} on {} devices, {}{}{}, {}, {}", name_of(x.kind), x.devices, name_of(x.datatype),
    reduces(x.kind) ? fmt::format(", {}", name_of(x.op)) : "", has_root(x.kind) ? fmt::format(", root {}", x.root) : "",
    fmt::format("{}{}", x.in_place ? "in place" : "out of place", x.uneven ? ", uneven" : ""),
    x.samples == 1 ? "one sample each" : fmt::format("medians of {} samples", x.samples)));
  text += remark(layout.summary());
  for (auto& node : layout.nodes())
    text += remark(node);
  if (auto note = table_.note(); !note.empty())
    text += remark(note);
  return text + table_.head();
}

std::string bench_table::row(const bench_row& row) const {
  auto& x = options_;
  auto number = [](double value) { return fmt::format("{:.2f}", value); };
  return table_.row({std::to_string(row.bytes), std::to_string(row.count), std::string{name_of(x.datatype)},
                     reduces(x.kind) ? std::string{name_of(x.op)} : "none",
                     has_root(x.kind) ? std::to_string(x.root) : "-1", row.algorithm, number(row.time_us),
                     number(row.algbw), number(row.busbw), number(row.p50_us), number(row.p99_us),
                     std::to_string(row.wrong), row.limit_us == 0 ? "" : number(row.limit_us / row.time_us)});
}

std::string bench_table::remark(const std::string& text) const {
  constexpr std::string_view begin = "# ";
  auto lines = page_.wide ? text : wrapped_text(text, page_.columns - begin.size());
  for (size_t at = 0; (at = lines.find('\n', at)) != lines.npos; ++at)
    lines.insert(at + 1, begin);
  return fmt::format("{}{}\n", begin, lines);
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
