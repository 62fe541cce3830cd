#include "runtime/algorithms/trees/two_trees.hpp"

#include <algorithm>
#include <utility>

namespace ringmaster {

namespace {

/// In the in-order tree over 1 to `nodes`; 0 for the top. Where the parent that a complete tree has is beyond the end,
/// it is the next node above that exists: the one to the left.
uint32_t in_order_parent(uint32_t number, uint32_t nodes) {
  const uint64_t bit = number & -number;
  const auto above = (number ^ bit) | bit << 1;
  return static_cast<uint32_t>(above <= nodes ? above : number ^ bit);
}

/// The second tree's number at a place of the first.
uint32_t second_at(uint32_t place, uint32_t nodes) {
  if (nodes % 2 == 0)
    return nodes + 1 - place;
  return place == nodes ? 1 : place + 1;
}

} // namespace

two_trees::two_trees(uint32_t size) {
  for (uint32_t tree : {0, 1}) {
    parents_[tree].resize(size);
    children_[tree].resize(size);
    colours_[tree].resize(size, uncoloured);
    arrivals_[tree].resize(size, unknown);
  }
  place(size);
  colour_from(0, children_[0][0][0], 0);
  for (uint32_t number = 1; number < size; ++number)
    colour_from(0, number, 0); // where the links above were not reached yet, either colour will do
  for (uint32_t tree : {0, 1})
    for (uint32_t number = 1; number < size; ++number)
      last_arrival_ = std::max(last_arrival_, arrive(tree, number));
  for (uint32_t tree : {0, 1})
    for (auto& [first, second] : children_[tree])
      if (second != 0 && arrivals_[tree][second] < arrivals_[tree][first])
        std::swap(first, second);
}

void two_trees::place(uint32_t size) {
  const auto nodes = size - 1;
  for (uint32_t place = 1; place <= nodes; ++place) {
    const auto above = in_order_parent(place, nodes);
    parents_[0][place] = above;
    parents_[1][second_at(place, nodes)] = above == 0 ? 0 : second_at(above, nodes);
  }
  for (uint32_t tree : {0, 1})
    for (uint32_t number = 1; number <= nodes; ++number) {
      auto& [first, second] = children_[tree][parents_[tree][number]];
      (first == 0 ? first : second) = number;
    }
}

/// Colours the link above `number` and all that are bound by it, one path or cycle, unless it has a colour.
void two_trees::colour_from(uint32_t tree, uint32_t number, uint8_t colour) {
  struct choice {
    uint32_t tree, number;
    uint8_t colour;
  };
  std::vector<choice> open{{tree, number, colour}};
  while (!open.empty()) {
    const auto x = open.back();
    open.pop_back();
    if (colours_[x.tree][x.number] != uncoloured)
      continue;
    colours_[x.tree][x.number] = x.colour;
    const auto other_tree = 1 - x.tree;
    const auto other_colour = static_cast<uint8_t>(1 - x.colour);
    open.push_back({other_tree, x.number, other_colour}); // the number receives through both
    if (const auto above = parents_[x.tree][x.number]; above == 0) {
      open.push_back({other_tree, children_[other_tree][0][0], other_colour}); // 0 sends through both
    } else {
      for (auto child : children_[x.tree][above])
        if (child != 0 && child != x.number)
          open.push_back({x.tree, child, other_colour});
    }
  }
}

/// Fills in the arrival at `number`, and at those above it.
uint32_t two_trees::arrive(uint32_t tree, uint32_t number) {
  auto& arrival = arrivals_[tree][number];
  if (arrival != unknown)
    return arrival;
  const auto above = parents_[tree][number];
  const auto colour = colours_[tree][number];
  if (above == 0)
    arrival = colour;
  else
    arrival = arrive(tree, above) + (colour == colours_[tree][above] ? 2 : 1);
  return arrival;
}

} // namespace ringmaster
