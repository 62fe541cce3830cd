#include "tools/tune/tune_report.hpp"

#include "messages/try.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace ringmaster {

namespace {

struct compared_sample {
  cost_sample measured;
  double estimate_s = 0;
};

using group_key = std::tuple<transport, proto::CollectiveKind, uint32_t, std::vector<uint32_t>, uint64_t>;

/// The algorithm that "auto" picks: in a process a shared-memory operation, between processes the fastest by estimate.
const compared_sample& pick_of(const std::vector<compared_sample>& group) {
  ensure(!group.empty(), "a group has samples");
  const auto* shared = first_shared_memory(group.front().measured.kind);
  if (group.front().measured.by != transport::network && shared != nullptr)
    for (auto& x : group)
      if (x.measured.algorithm == shared->name)
        return x;
  return *std::min_element(group.begin(), group.end(), [](auto& a, auto& b) { return a.estimate_s < b.estimate_s; });
}

std::string verdict(const std::vector<compared_sample>& group, size_t& good) {
  constexpr double good_enough = 1.2;
  const auto& picked = pick_of(group);
  const auto& fastest = *std::min_element(group.begin(), group.end(),
                                          [](auto& a, auto& b) { return a.measured.seconds < b.measured.seconds; });
  auto ratio = picked.measured.seconds / fastest.measured.seconds;
  good += ratio <= good_enough;
  if (&picked == &fastest)
    return fmt::format("picked: {}, the fastest", picked.measured.algorithm);
  return fmt::format("picked: {}, {:.2f} times the fastest, {}{}", picked.measured.algorithm, ratio,
                     fastest.measured.algorithm, ratio <= good_enough ? ": within 20 %" : ": NOT within 20 %");
}

} // namespace

std::string seconds_text(double seconds) {
  return duration_text(static_cast<uint64_t>(std::llround(seconds * 1e9)));
}

caf::expected<std::string> comparison_text(const std::vector<cost_sample>& samples, const options& values,
                                           uint32_t cores) {
  std::map<group_key, std::vector<compared_sample>> groups;
  for (const auto& x : samples) {
    TRY(estimate, estimate_of(x, values, cores));
    groups[{x.by, x.kind, x.ranks, x.hosts, x.bytes}].push_back({x, *estimate});
  }
  constexpr std::array<std::string_view, 3> where{"ranks in one process", "ranks between processes",
                                                  "ranks of a training"};
  std::string text;
  size_t near = 0, good = 0;
  for (auto& [key, group] : groups) {
    auto [by, kind, ranks, hosts, bytes] = key;
    std::sort(group.begin(), group.end(), [](auto& a, auto& b) { return a.measured.seconds < b.measured.seconds; });
    auto on_hosts = std::set<uint32_t>(hosts.begin(), hosts.end()).size();
    text += fmt::format("{}, {} {}{}, {}; {}\n", name_of(kind), ranks, where[static_cast<size_t>(by)],
                        on_hosts > 1 ? fmt::format(" on {} hosts", on_hosts) : "", bytes_text(bytes),
                        verdict(group, good));
    for (const auto& x : group) {
      auto ratio = x.estimate_s / x.measured.seconds;
      near += ratio >= 0.5 && ratio <= 2;
      text += fmt::format("  {:<18} measured {:>9}  estimated {:>9}  ratio {:.2f}\n", x.measured.algorithm,
                          seconds_text(x.measured.seconds), seconds_text(x.estimate_s), ratio);
    }
  }
  return text
         + fmt::format("{} of {} estimates within a factor of 2; {} of {} picks the fastest or within 20 % of it\n",
                       near, samples.size(), good, groups.size());
}

std::string fit_text(const tuned_costs& x) {
  std::string text;
  auto add = [&](const char* what, const linear_fit& fit) {
    if (!fit.coefficients.empty())
      text += fmt::format("fit of {}: relative residual {:.0f} % (root mean square), at worst a factor of {:.2f}\n",
                          what, 100 * fit.residual, fit.worst_ratio);
  };
  add("copies in one process", x.walked);
  add("shared-memory operations", x.joint);
  add("messages between processes", x.network);
  if (!x.unseen.empty())
    text += fmt::format("unchanged, since the measurement does not determine them: {}\n", fmt::join(x.unseen, ", "));
  return text;
}

} // namespace ringmaster
