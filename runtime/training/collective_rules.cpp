#include "runtime/training/collective_rules.hpp"

#include "runtime/training/tag_checks.hpp"

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

/// All ranks have other ones of so many; `of` says which of them a tag is.
template <class Shard>
std::string complete(arguments all, uint32_t count, Shard of) {
  auto& first = *all.front();
  std::vector<bool> there(count);
  for (auto* each : all) {
    auto& x = each->argument;
    if (const auto i = of(x); i >= count || there[i])
      return refused(*each, fmt::format("the {} does not go with the {} of rank {}", text_of(x),
                                        text_of(first.argument), first.rank));
    else
      there[i] = true;
  }
  if (std::ranges::find(there, false) == there.end())
    return {};
  return refused(first, fmt::format("{} ranks do not have all of the {} parts of the {}", all.size(), there.size(),
                                    text_of(first.argument)));
}

/// All ranks have other shards of the same, and together all that there are.
std::string complete(arguments all) {
  auto& whole = all.front()->argument;
  return complete(all, whole.part.count, [&](auto& x) {
    const bool same = alike(x, whole) && x.tensor == whole.tensor && x.run == whole.run
                      && (!of_activation(x.kind) || x.samples == whole.samples);
    return same ? x.part.index : UINT32_MAX;
  });
}

/// The same of summands.
std::string complete_sum(arguments all) {
  auto& whole = all.front()->argument;
  return complete(all, whole.tensor.count, [&](auto& x) {
    const bool same = alike(x, whole) && x.part == whole.part && x.tensor.count == whole.tensor.count
                      && x.samples == whole.samples;
    return same ? x.tensor.index : UINT32_MAX;
  });
}

/// Whether gradients can be added, whatever samples and positions they are by.
bool addable(const value_tag& a, const value_tag& b) {
  return a.kind == b.kind && a.has == b.has && a.step == b.step && a.part == b.part && a.tensor == b.tensor;
}

/// Samples, and which of their positions.
struct covered {
  range_set samples;
  position_run positions;
};

/// What ranks have between them: the positions of the same samples first, whose ranks are neighbours in the order of
/// positions; then the samples. Their tags are `of` them.
template <class Tag>
std::string cover(arguments all, covered& total, Tag of) {
  for (size_t i = 0; i < all.size(); ++i) {
    auto &x = of(*all[i]), &before = of(*all[i - (i > 0)]);
    auto& run = total.positions;
    const bool begins = i == 0 || run.all();
    if (begins)
      run = positions_of(x);
    else if (x.samples != before.samples || !join(run, positions_of(x)))
      return refused(*all[i], fmt::format("the {} does not go on where rank {} ends, which has the {}", text_of(x),
                                          all[i - 1]->rank, text_of(before)));
    if (begins && !total.samples.add(x.samples))
      return refused(*all[i], fmt::format("the {} would count twice: the ranks before it have samples {}", text_of(x),
                                          total.samples.text()));
  }
  if (total.positions.all() || total.samples == of(*all.front()).samples)
    return {};
  return refused(*all.back(), fmt::format("the ranks do not have all positions of the {}", text_of(of(*all.back()))));
}

value_tag& argument_of(pending& x) {
  return x.argument;
}

std::string sum_positions(arguments all, value_tag& total) {
  for (auto* each : all)
    if (!addable(each->argument, total))
      return refused(*each, fmt::format("it has the {}, rank {} the {}", text_of(each->argument), all.front()->rank,
                                        text_of(total)));
  covered sum;
  auto problem = cover(all, sum, argument_of);
  if (problem.empty() && !sum.positions.all())
    problem = refused(*all.back(),
                      fmt::format("the ranks do not have all positions of the {}", text_of(all.back()->argument)));
  total.samples = std::move(sum.samples);
  total.set_positions({});
  return problem;
}

std::string sum_samples(arguments all, value_tag& total) {
  if (total.run != 0 && all.size() > 1 && all[1]->argument.run != total.run)
    return sum_positions(all, total);
  for (auto* each : all.subspan(1)) {
    auto& x = each->argument;
    if (!addable(x, total) || x.run != total.run)
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
        || x.part != total.part || x.samples != total.samples || x.run != total.run
        || x.tensor.count != total.tensor.count || there[x.tensor.index])
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
    if (!alike(x, total) || x.tensor != total.tensor || x.samples != total.samples || !join(run, x.positions()))
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
  auto problem = complete_sum(all);
  total.has = total.part.whole() ? form::whole : form::sequence;
  total.tensor = {};
  return problem;
}

/// All shards of one that is a sequence shard itself, in their order.
std::string gather_part(arguments all, value_tag& whole) {
  const auto count = static_cast<uint32_t>(all.size());
  const auto first = whole.part.index;
  for (uint32_t i = 0; i < count; ++i)
    if (auto& x = all[i]->argument; !alike(x, whole) || x.samples != whole.samples || x.tensor != whole.tensor
                                    || first % count != 0 || x.part.index != first + i)
      return refused(*all[i], fmt::format("the {} is not part {} of {} of what the ranks have: rank {} has the {}",
                                          text_of(x), i, count, all.front()->rank, text_of(whole)));
  whole.part = {first / count, whole.part.count / count};
  return {};
}

std::string gather(arguments all, value_tag& whole) {
  const bool of_sequence = of_activation(whole.kind) && whole.has == form::sequence;
  if (whole.kind != value_kind::weight && !of_sequence)
    return refused(*all.front(), fmt::format("the {} is no shard", text_of(whole)));
  if (of_sequence && all.size() < whole.part.count && whole.part.count % all.size() == 0)
    return gather_part(all, whole);
  auto problem = complete(all);
  whole.has = form::whole;
  whole.part = {};
  return problem.empty() ? in_order(all) : problem;
}

/// Positions of each rank go to all ranks' experts.
std::string dispatch(arguments all, value_tag& x) {
  for (auto* each : all)
    if (!alike(each->argument, x))
      return refused(*each, fmt::format("the {} does not go with the {} of rank {}", text_of(each->argument),
                                        text_of(x), all.front()->rank));
  covered sent;
  auto problem = cover(all, sent, argument_of);
  x.samples = std::move(sent.samples);
  x.set_positions(sent.positions);
  x.has = form::experts;
  x.part = {};
  return problem;
}

/// Each rank gets what experts have made of the samples that it asks for; they are those that went there.
std::string bring_back(arguments all, value_tag& x) {
  if (auto problem = complete(all); !problem.empty())
    return problem;
  if (auto problem = in_order(all); !problem.empty())
    return problem;
  covered asked;
  for (auto* each : all) { // of which the sentences speak
    each->results[0].kind = x.kind;
    each->results[0].layer = x.layer;
  }
  if (auto problem = cover(all, asked, [](pending& its) -> value_tag& { return its.results[0]; }); !problem.empty())
    return problem;
  if (asked.samples == x.samples && asked.positions == x.positions())
    return {};
  auto text = [](const range_set& samples, const position_run& run) {
    return run.all() ? samples.text() : fmt::format("{}, {}", samples.text(), text_of(run));
  };
  return refused(*all.front(), fmt::format("the ranks ask for samples {}, and these are {}",
                                           text(asked.samples, asked.positions), text(x.samples, x.positions())));
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
    if (what == op::all_to_all && all[i]->argument.has == form::experts) { // what it asks for comes back
      mine.kind = result.kind;
      mine.layer = result.layer;
      mine.step = result.step;
      continue;
    }
    mine = result;
    if (result.kind == value_kind::weight_gradient && !result.tensor.whole())
      mine.tensor = all[i]->argument.tensor;
    if (what == op::reduce_scatter)
      mine.part = detail::sequence_shard(result.part, {i, count});
    if (what == op::all_to_all)
      mine.part = {i, count};
    if (what == op::reduce_scatter && of_activation(result.kind))
      mine.has = form::sequence;
  }
  return {};
}

} // namespace ringmaster::training
