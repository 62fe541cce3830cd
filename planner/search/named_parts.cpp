#include "planner/search/named_parts.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ringmaster::training {

namespace {

named_parts communication_by_part(const communication_parts& x) {
  return {{"tensor", x.layers.tensor},
          {"context", x.layers.context},
          {"experts", x.layers.experts},
          {"stages", x.hops},
          {"gradients", x.gradients}};
}

double amount_of(const named_parts& all, const std::string& name) {
  auto at = std::ranges::find(all, name, &named_part::name);
  return at == all.end() ? 0 : at->amount;
}

double sum_of(const named_parts& all) {
  return std::accumulate(all.begin(), all.end(), 0.0, [](double sum, auto& x) { return sum + x.amount; });
}

bool equal_but_for_rounding(double a, double b) {
  return std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b));
}

} // namespace

named_parts seconds_by_part(const iteration_estimate& x) {
  named_parts result{{"compute", x.seconds - x.bubble - x.imbalance - x.update - x.offload - x.exposed.sum()}};
  for (auto& part : communication_by_part(x.exposed))
    result.push_back(part);
  result.push_back({"bubble", x.bubble});
  result.push_back({"imbalance", x.imbalance});
  result.push_back({"optimizer", x.update});
  result.push_back({"offloading", x.offload});
  ensure(equal_but_for_rounding(sum_of(result), x.seconds), "the parts of an iteration add up to its time");
  return result;
}

named_parts hidden_by_part(const iteration_estimate& x) {
  return communication_by_part(x.hidden);
}

named_parts bytes_by_part(const memory_parts& x) {
  named_parts result{{"weights", x.weights},         {"gradients", x.gradients}, {"optimizer", x.optimizer},
                     {"activations", x.activations}, {"buffers", x.buffers},     {"logits", x.logits}};
  ensure(equal_but_for_rounding(sum_of(result), x.total()), "the parts of a rank's memory add up to all of it");
  for (auto& part : result)
    ensure(part.amount >= 0, "no part of a rank's memory is negative");
  return result;
}

std::vector<part_difference> differences(const named_parts& a, const named_parts& b) {
  auto names = a;
  for (auto& each : b)
    if (std::ranges::find(names, each.name, &named_part::name) == names.end())
      names.push_back(each);
  std::vector<part_difference> result;
  for (auto& [name, unused] : names)
    if (amount_of(a, name) != 0 || amount_of(b, name) != 0)
      result.push_back({name, amount_of(a, name), amount_of(b, name)});
  std::ranges::stable_sort(result, std::ranges::greater{}, [](auto& x) { return std::abs(x.b - x.a); });
  return result;
}

} // namespace ringmaster::training
