#include "tools/planning/plan_text.hpp"

#include <fmt/format.h>

namespace ringmaster {

using namespace training;

std::string amount_text(double x) {
  constexpr std::pair<double, std::string_view> units[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "K"}};
  for (auto [unit, letter] : units)
    if (x >= unit)
      return fmt::format("{:.7g}{}", x / unit, letter);
  return fmt::format("{:.7g}", x);
}

std::string grouped_text(double x) {
  auto text = fmt::format("{:.0f}", x);
  for (auto at = static_cast<ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<size_t>(at), ",");
  return text;
}

std::string sharding_of(const parallel_setting& how) {
  if (how.shard == 0)
    return fmt::format("zero{}", how.zero);
  return how.shard == how.shape.data * how.context ? "fsdp" : fmt::format("hsdp {}", how.shard);
}

std::string short_text(const parallel_setting& how) {
  auto text = fmt::format("TP{} CP{} DP{}{} PP{}, micro-batch {}", how.shape.tensor, how.context, how.shape.data,
                          how.expert > 1 ? fmt::format(" EP{}", how.expert) : "", how.shape.pipeline, how.micro_batch);
  if (how.shape.pipeline > 1)
    text += fmt::format(", {}", name_of(how.schedule));
  if (how.chunks > 1)
    text += fmt::format(", VPP{}", how.chunks);
  if (how.sequence_parallel)
    text += ", SP";
  text += ", " + sharding_of(how);
  return how.again == recomputation::none ? text : text + fmt::format(", recompute {}", name_of(how.again));
}

} // namespace ringmaster
