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

/// Whether gradients can be added, whatever samples and positions they are by.
bool addable(const value_tag& a, const value_tag& b) {
  return a.kind == b.kind && a.has == b.has && a.step == b.step && a.part == b.part && a.tensor.count == b.tensor.count;
}

/// The positions of the same samples first, whose ranks are neighbours in the order of positions; then the samples.
std::string sum_positions(arguments all, value_tag& total) {
  range_set samples;
  position_run run; // of the samples at hand
  for (size_t i = 0; i < all.size(); ++i) {
    auto& x = all[i]->argument;
    const bool begins = run.all();
    if (!addable(x, total)
        || !(begins ? (run = x.positions(), true)
                    : x.samples == all[i - 1]->argument.samples && join(run, x.positions())))
      return refused(*all[i], fmt::format("the {} does not go on where rank {} ends, which has the {}", text_of(x),
                                          all[i - (i > 0)]->rank, text_of(all[i - (i > 0)]->argument)));
    if (run.all() && !samples.add(x.samples))
      return refused(*all[i], fmt::format("the {} would count twice: the ranks before it have samples {}", text_of(x),
                                          samples.text()));
  }
  if (!run.all())
    return refused(*all.back(),
                   fmt::format("the ranks do not have all positions of the {}", text_of(all.back()->argument)));
  total.samples = std::move(samples);
  total.set_positions({});
  return {};
}

std::string sum_samples(arguments all, value_tag& total) {
  if (!total.positions().all() && all.size() > 1 && all[1]->argument.positions() != total.positions())
    return sum_positions(all, total);
  for (auto* each : all.subspan(1)) {
    auto& x = each->argument;
    if (!addable(x, total) || x.tensor != total.tensor)
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

/// Of gradients by all keys of a layer, each from other positions, in their order.
std::string sum_by_keys(arguments all, value_tag& total) {
  auto run = total.positions();
  for (auto* each : all.subspan(1)) {
    auto& x = each->argument;
    if (!alike(x, total) || x.samples != total.samples || !join(run, x.positions()))
      return refused(*each,
                     fmt::format("the {} does not go with the {} of the ranks before it", text_of(x), text_of(total)));
  }
  total.set_positions(run);
  return run.all() ? "" : refused(*all.front(), fmt::format("the ranks have the {} only", text_of(total)));
}

/// Of gradients by weights, the samples add up; of summands, the parts.
std::string sum(arguments all, value_tag& total) {
  if (total.kind == value_kind::weight_gradient)
    return total.has == form::summand ? sum_replicated(all, total) : sum_samples(all, total);
  if (total.kind == value_kind::keys_gradient && total.has == form::whole)
    return sum_by_keys(all, total);
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

/// Samples of each rank go to all ranks' experts.
std::string dispatch(arguments all, value_tag& x) {
  for (auto* each : all.subspan(1)) {
    auto& its = each->argument;
    if (!alike(its, x) || !x.samples.add(its.samples))
      return refused(*each, fmt::format("the {} does not go with the {} of rank {}", text_of(its),
                                        text_of(all.front()->argument), all.front()->rank));
  }
  x.has = form::experts;
  return {};
}

/// Each rank gets what experts have made of the samples that it asks for; they are those that went there.
std::string bring_back(arguments all, value_tag& x) {
  if (auto problem = complete(all); !problem.empty())
    return problem;
  if (auto problem = in_order(all); !problem.empty())
    return problem;
  range_set asked;
  for (auto* each : all)
    if (!asked.add(each->results[0].samples))
      return refused(*each, fmt::format("it asks for samples {}, of which ranks before it ask for some",
                                        each->results[0].samples.text()));
  if (asked != x.samples)
    return refused(*all.front(),
                   fmt::format("the ranks ask for samples {}, and these are {}", asked.text(), x.samples.text()));
  x.has = form::whole;
  return {};
}

std::string exchange(arguments all, value_tag& x) {
  if (of_activation(x.kind) && x.has == form::experts)
    return bring_back(all, x);
  if (of_activation(x.kind) && std::ranges::all_of(all, [](auto* y) { return y->results[0].has == form::experts; }))
    return dispatch(all, x);
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
    const bool comes_back = what == op::all_to_all && all[i]->argument.has == form::experts;
    auto asked = comes_back ? std::move(mine.samples) : range_set{};
    mine = result;
    if (comes_back) {
      mine.samples = std::move(asked);
      mine.part = {};
      continue;
    }
    if (result.kind == value_kind::weight_gradient && !result.tensor.whole())
      mine.tensor = all[i]->argument.tensor;
    if (what == op::reduce_scatter || what == op::all_to_all)
      mine.part = {i, count};
    if (what == op::reduce_scatter && of_activation(result.kind))
      mine.has = form::sequence;
  }
  return {};
}

} // namespace ringmaster::training
