#include "runtime/training/collective_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace ringmaster::training {

namespace {

using arguments = std::span<pending* const>;

/// The same but for what differs among shards: part and samples.
bool alike(const value_tag& a, const value_tag& b) {
  return a.kind == b.kind && a.has == b.has && a.layer == b.layer && a.step == b.step && a.part.count == b.part.count;
}

/// Shards are put one behind the other, as the ranks are.
std::string in_order(arguments all) {
  for (uint32_t i = 0; i < all.size(); ++i)
    if (auto& x = all[i]->argument; x.part.index != i)
      return refused(*all[i], fmt::format("the {} is not shard {}, which its place in the group is", text_of(x), i));
  return {};
}

/// All ranks have other shards, and together all that there are.
std::string complete(arguments all) {
  auto& first = *all.front();
  std::vector<bool> there(first.argument.part.count);
  for (auto* each : all) {
    auto& x = each->argument;
    if (!alike(x, first.argument) || there[x.part.index]
        || (of_activation(x.kind) ? x.samples != first.argument.samples : x.tensor != first.argument.tensor))
      return refused(*each, fmt::format("the {} does not go with the {} of rank {}", text_of(x),
                                        text_of(first.argument), first.rank));
    there[x.part.index] = true;
  }
  if (std::ranges::find(there, false) == there.end())
    return {};
  return refused(first, fmt::format("{} ranks do not have all of the {} parts of the {}", all.size(), there.size(),
                                    text_of(first.argument)));
}

std::string sum_samples(arguments all, value_tag& total) {
  for (auto* each : all.subspan(1)) {
    auto& x = each->argument;
    if (x.kind != total.kind || x.has != total.has || x.step != total.step || x.part != total.part
        || x.tensor != total.tensor)
      return refused(*each,
                     fmt::format("it has the {}, rank {} the {}", text_of(x), all.front()->rank, text_of(total)));
    if (!total.samples.add(x.samples))
      return refused(*each, fmt::format("the {} would count twice: the ranks before it have samples {}", text_of(x),
                                        total.samples.text()));
  }
  return {};
}

/// Of what tensor-parallel ranks all have: each has found a summand of its gradient.
std::string sum_replicated(arguments all, value_tag& total) {
  std::vector<bool> there(total.tensor.count);
  for (auto* each : all) {
    auto& x = each->argument;
    if (x.kind != total.kind || x.has != total.has || x.layer != total.layer || x.step != total.step
        || x.part != total.part || x.samples != total.samples || x.tensor.count != total.tensor.count
        || there[x.tensor.index])
      return refused(*each,
                     fmt::format("it has the {}, rank {} the {}", text_of(x), all.front()->rank, text_of(total)));
    there[x.tensor.index] = true;
  }
  if (all.size() != there.size())
    return refused(*all.front(), fmt::format("{} ranks do not have all of the {} tensor shards of the {}", all.size(),
                                             there.size(), text_of(total)));
  total.has = form::whole;
  return {};
}

/// Of gradients by weights, the samples add up; of summands, the parts.
std::string sum(arguments all, value_tag& total) {
  if (total.kind == value_kind::weight_gradient)
    return total.has == form::summand ? sum_replicated(all, total) : sum_samples(all, total);
  if (!of_activation(total.kind) || total.has != form::summand)
    return refused(*all.front(), fmt::format("the {} is nothing that is summed over ranks", text_of(total)));
  auto problem = complete(all);
  total.has = form::whole;
  total.part = {};
  return problem;
}

std::string gather(arguments all, value_tag& whole) {
  if (whole.kind != value_kind::weight && !(of_activation(whole.kind) && whole.has == form::sequence))
    return refused(*all.front(), fmt::format("the {} is no shard", text_of(whole)));
  auto problem = complete(all);
  whole.has = form::whole;
  whole.part = {};
  return problem.empty() ? in_order(all) : problem;
}

std::string exchange(arguments all, value_tag& x) {
  if (!of_activation(x.kind) || (x.has != form::sequence && x.has != form::heads))
    return refused(*all.front(), fmt::format("the {} is neither a sequence nor a heads shard", text_of(x)));
  x.has = x.has == form::sequence ? form::heads : form::sequence;
  auto problem = complete(all);
  return problem.empty() ? in_order(all) : problem;
}

std::string reduce(arguments all, value_tag& x) {
  if (all.front()->what == op::reduce_scatter && x.kind == value_kind::weight_gradient && x.has == form::summand)
    return refused(*all.front(), fmt::format("the {}: that comes first", text_of(x)));
  if (all.front()->what == op::reduce_scatter && x.kind == value_kind::weight_gradient && !x.part.whole())
    return refused(*all.front(), fmt::format("it needs the whole, and has the {}", text_of(x)));
  return sum(all, x);
}

pending& root_of(arguments all) {
  return *all[all.front()->among.index_of(all.front()->peer)];
}

} // namespace

bool match(const pending& a, const pending& b) {
  if (a.what != b.what || a.argument.kind != b.argument.kind)
    return false;
  return a.what == op::broadcast ? a.peer == b.peer : a.argument.layer == b.argument.layer;
}

std::string combine(arguments all) {
  const auto what = all.front()->what;
  auto result = what == op::broadcast ? root_of(all).argument : all.front()->argument;
  std::string problem;
  if (what == op::all_reduce || what == op::reduce_scatter)
    problem = reduce(all, result);
  else if (what == op::all_gather)
    problem = gather(all, result);
  else if (what == op::all_to_all)
    problem = exchange(all, result);
  if (!problem.empty())
    return problem;
  const auto count = static_cast<uint32_t>(all.size());
  for (uint32_t i = 0; i < count; ++i) {
    auto& mine = all[i]->results[0];
    mine = result;
    if (result.kind == value_kind::weight_gradient)
      mine.tensor = all[i]->argument.tensor;
    if (what == op::reduce_scatter || what == op::all_to_all)
      mine.part = {i, count};
    if (what == op::reduce_scatter && of_activation(result.kind))
      mine.has = form::sequence;
  }
  return {};
}

} // namespace ringmaster::training
