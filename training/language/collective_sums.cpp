#include "training/language/collective_parts.hpp"

namespace ringmaster::training::detail {

namespace {

/// Whether gradients can be added, whatever samples and positions they are by.
bool addable(const value_tag& a, const value_tag& b) {
  return a.kind == b.kind && a.has == b.has && a.step == b.step && a.part == b.part && a.tensor == b.tensor;
}

caf::error sum_positions(arguments all, value_tag& total) {
  for (auto* each : all)
    if (!addable(each->argument, total))
      return refused(*each, fmt::format("it has the {}, rank {} the {}", text_of(each->argument), all.front()->rank,
                                        text_of(total)));
  covered sum;
  auto problem = cover(all, sum, argument_of);
  if (!problem && !sum.positions.all())
    problem = refused(*all.back(),
                      fmt::format("the ranks do not have all positions of the {}", text_of(all.back()->argument)));
  total.samples = std::move(sum.samples);
  total.set_positions({});
  return problem;
}

caf::error sum_samples(arguments all, value_tag& total) {
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
  return caf::none;
}

/// Of what tensor-parallel ranks all have: each has found a summand of its gradient.
caf::error sum_replicated(arguments all, value_tag& total) {
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
  return caf::none;
}

/// Of gradients by all keys of a layer, each from other positions, in their order.
caf::error sum_by_keys(arguments all, value_tag& total) {
  auto run = total.positions();
  for (auto* each : all.subspan(1)) {
    auto& x = each->argument;
    if (!alike(x, total) || x.tensor != total.tensor || x.samples != total.samples || !join(run, x.positions()))
      return refused(*each,
                     fmt::format("the {} does not go with the {} of the ranks before it", text_of(x), text_of(total)));
  }
  total.set_positions(run);
  return run.all() ? caf::error{} : refused(*all.front(), fmt::format("the ranks have the {} only", text_of(total)));
}

} // namespace

caf::error sum(arguments all, value_tag& total) {
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

} // namespace ringmaster::training::detail
