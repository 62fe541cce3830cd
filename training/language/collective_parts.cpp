#include "training/language/collective_parts.hpp"

namespace ringmaster::training::detail {

caf::error in_order(arguments all) {
  for (uint32_t i = 0; i < all.size(); ++i)
    if (auto& x = all[i]->argument; x.part.index != i)
      return refused(*all[i], fmt::format("the {} is not shard {}, which its place in the group is", text_of(x), i));
  return caf::none;
}

caf::error complete(arguments all) {
  auto& whole = all.front()->argument;
  return complete(all, whole.part.count, [&](auto& x) {
    const bool same = alike(x, whole) && x.tensor == whole.tensor && x.run == whole.run
                      && (!of_activation(x.kind) || x.samples == whole.samples);
    return same ? x.part.index : UINT32_MAX;
  });
}

caf::error complete_sum(arguments all) {
  auto& whole = all.front()->argument;
  return complete(all, whole.tensor.count, [&](auto& x) {
    const bool same = alike(x, whole) && x.part == whole.part && x.tensor.count == whole.tensor.count
                      && x.samples == whole.samples;
    return same ? x.tensor.index : UINT32_MAX;
  });
}

caf::error cover(arguments all, covered& total, value_tag& (*of)(pending& x)) {
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
    return caf::none;
  return refused(*all.back(), fmt::format("the ranks do not have all positions of the {}", text_of(of(*all.back()))));
}

} // namespace ringmaster::training::detail
