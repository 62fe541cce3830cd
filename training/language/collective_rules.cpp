#include "training/language/collective_rules.hpp"

#include "messages/try.hpp"
#include "training/language/collective_parts.hpp"
#include "training/language/tag_checks.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::training {

using namespace detail;

namespace {

/// All shards of one that is a sequence shard itself, in their order.
caf::error gather_part(arguments all, value_tag& whole) {
  const auto count = static_cast<uint32_t>(all.size());
  const auto first = whole.part.index;
  for (uint32_t i = 0; i < count; ++i)
    if (auto& x = all[i]->argument; !alike(x, whole) || x.samples != whole.samples || x.tensor != whole.tensor
                                    || x.run != whole.run || first % count != 0 || x.part.index != first + i)
      return refused(*all[i], fmt::format("the {} is not part {} of {} of what the ranks have: rank {} has the {}",
                                          text_of(x), i, count, all.front()->rank, text_of(whole)));
  whole.part = {first / count, whole.part.count / count};
  return caf::none;
}

caf::error gather(arguments all, value_tag& whole) {
  const bool of_sequence = of_activation(whole.kind) && whole.has == form::sequence;
  const bool of_columns = of_activation(whole.kind) && whole.has == form::columns;
  if (whole.kind != value_kind::weight && !of_sequence && !of_columns)
    return refused(*all.front(), fmt::format("the {} is no shard", text_of(whole)));
  if (of_sequence && all.size() < whole.part.count && whole.part.count % all.size() == 0)
    return gather_part(all, whole);
  auto problem = complete(all);
  if (of_activation(whole.kind))
    whole.has = form::whole;
  whole.part = {};
  return problem ? problem : in_order(all);
}

/// Positions of each rank go to all ranks' experts.
caf::error dispatch(arguments all, value_tag& x) {
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
caf::error bring_back(arguments all, value_tag& x) {
  RETURN_ERROR(complete(all));
  RETURN_ERROR(in_order(all));
  covered asked;
  for (auto* each : all) { // of which the sentences speak
    each->results[0].kind = x.kind;
    each->results[0].layer = x.layer;
  }
  if (auto problem = cover(all, asked, [](pending& its) -> value_tag& { return its.results[0]; }))
    return problem;
  if (asked.samples == x.samples && asked.positions == x.positions())
    return caf::none;
  auto text = [](const range_set& samples, const position_run& run) {
    return run.all() ? samples.text() : fmt::format("{}, {}", samples.text(), text_of(run));
  };
  return refused(*all.front(), fmt::format("the ranks ask for samples {}, and these are {}",
                                           text(asked.samples, asked.positions), text(x.samples, x.positions())));
}

caf::error exchange(arguments all, value_tag& x) {
  if (of_activation(x.kind) && x.has == form::experts)
    return bring_back(all, x);
  if (of_activation(x.kind) && std::ranges::all_of(all, [](auto* y) { return y->results[0].has == form::experts; }))
    return dispatch(all, x);
  if (!of_activation(x.kind) || (x.has != form::sequence && x.has != form::columns))
    return refused(*all.front(), fmt::format("the {} is neither a sequence nor a column shard", text_of(x)));
  x.has = x.has == form::sequence ? form::columns : form::sequence;
  auto problem = complete(all);
  return problem ? problem : in_order(all);
}

/// Whether a rank wants columns of a sum, in place of positions.
bool asks_for_columns(const pending& x) {
  return x.what == op::reduce_scatter && x.results[0].has == form::columns;
}

/// A sum of activations, of which each rank is to get columns.
caf::error not_for_columns(arguments all, const value_tag& x) {
  for (auto* each : all)
    if (!asks_for_columns(*each))
      return refused(*each,
                     fmt::format("it asks for a sequence shard of the {}, and others for column shards", text_of(x)));
  if (x.part.whole())
    return caf::none;
  return refused(*all.front(), fmt::format("the {} is not of all positions: there are no columns of it", text_of(x)));
}

caf::error reduce(arguments all, value_tag& x) {
  if (all.front()->what == op::reduce_scatter && x.kind == value_kind::weight_gradient && x.has == form::summand)
    return refused(*all.front(), fmt::format("the {}: that comes first", text_of(x)));
  if (all.front()->what == op::reduce_scatter && x.kind == value_kind::weight_gradient && !x.part.whole())
    return refused(*all.front(), fmt::format("it needs the whole, and has the {}", text_of(x)));
  if (std::ranges::any_of(all, [](auto* y) { return asks_for_columns(*y); }))
    RETURN_ERROR(not_for_columns(all, x));
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

caf::error combine(arguments all) {
  const auto what = all.front()->what;
  auto result = what == op::broadcast ? root_of(all).argument : all.front()->argument;
  caf::error problem;
  if (what == op::all_reduce || what == op::reduce_scatter)
    problem = reduce(all, result);
  else if (what == op::all_gather)
    problem = gather(all, result);
  else if (what == op::all_to_all)
    problem = exchange(all, result);
  if (problem)
    return problem;
  const auto count = static_cast<uint32_t>(all.size());
  const bool in_columns = asks_for_columns(*all.front());
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
      mine.part = of_activation(result.kind) ? sequence_shard(result.part, {i, count}) : shard{i, count};
    if (mine.part.count == 0)
      return refused(*all.front(), fmt::format("{} parts of the {} are more than the {} that its positions are cut in",
                                               count, text_of(result), position_run::of_max));
    if (what == op::all_to_all)
      mine.part = {i, count};
    if (what == op::reduce_scatter && of_activation(result.kind))
      mine.has = in_columns ? form::columns : form::sequence;
  }
  return caf::none;
}

} // namespace ringmaster::training
