#pragma once

#include "training/language/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

/// What ranks that meet have between them, by their arguments' tags. Errors: invalid_argument, with the rank, the
/// operation and what is missing.
namespace ringmaster::training::detail {

using arguments = std::span<pending* const>;

/// The same but for what differs among shards: part and samples.
inline bool alike(const value_tag& a, const value_tag& b) {
  return a.kind == b.kind && a.has == b.has && a.layer == b.layer && a.step == b.step && a.part.count == b.part.count;
}

/// All ranks have different ones of `count`; `of` says which of them a tag is.
template <class Shard>
caf::error complete(arguments all, uint32_t count, Shard of) {
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
    return caf::none;
  return refused(first, fmt::format("{} ranks do not have all of the {} parts of the {}", all.size(), there.size(),
                                    text_of(first.argument)));
}

/// All ranks have other shards of the same, and together all that there are.
caf::error complete(arguments all);
/// The same of summands.
caf::error complete_sum(arguments all);
/// Shards are put one behind the other, as the ranks are.
caf::error in_order(arguments all);

/// Samples, and which of their positions.
struct covered {
  range_set samples;
  position_run positions;
};

/// What ranks have between them: the positions of the same samples first, whose ranks are neighbours in the order of
/// positions; then the samples. `of` says of which tag of each.
caf::error cover(arguments all, covered& total, value_tag& (*of)(pending& x));
inline value_tag& argument_of(pending& x) {
  return x.argument;
}

/// What the sum over the ranks is of: of gradients by weights, the samples add up; of summands, the parts.
caf::error sum(arguments all, value_tag& total);

} // namespace ringmaster::training::detail
