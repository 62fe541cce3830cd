#include "runtime/algorithms/trees/trees.hpp"

#include "runtime/algorithms/parts/cost_counter.hpp"
#include "runtime/algorithms/parts/pieces.hpp"
#include "runtime/schedule/collective.hpp"

#include <algorithm>
#include <bit>

namespace ringmaster {

namespace {

using message = std::array<block_range, 2>; ///< One range, or two that go as two messages.

/// The binomial tree over ranks counted from the root. A node stands for the blocks of its subtree.
struct binomial_tree {
  const blocks& cut; ///< By rank.
  uint32_t root;

  uint32_t size() const { return cut.size(); }
  uint32_t levels() const { return doublings(size()); }
  uint32_t place_of(uint32_t rank) const { return (rank + size() - root) % size(); }
  uint32_t rank_at(uint32_t place) const { return (place + root) % size(); }
  /// The parent is at a distance of 2^level. The root has none.
  uint32_t level_of(uint32_t place) const { return place == 0 ? levels() : std::countr_zero(place); }
  uint32_t nodes_under(uint32_t place) const {
    return place == 0 ? size() : std::min(1u << level_of(place), size() - place);
  }
  message in_rank_order(buffer where, uint32_t place, uint32_t nodes) const {
    return wrapped_blocks(cut, where, rank_at(place), nodes);
  }
  uint64_t elements(uint32_t place, uint32_t nodes) const {
    const auto parts = in_rank_order(buffer::scratch, place, nodes);
    return parts[0].count + parts[1].count;
  }
  /// What goes along the edge between `place` and its parent: as the root has it, if that is the parent.
  message parent_message(uint32_t place, block_range subtree) const {
    if (std::has_single_bit(place))
      subtree.count = in_rank_order(subtree.where, place, nodes_under(place))[0].count;
    const auto rest = elements(place, nodes_under(place)) - subtree.count;
    return {subtree, {subtree.where, subtree.offset + subtree.count, rest}};
  }
};

/// One rank's node. The root has all blocks in `all`, and a rank without children has its one in `single`.
struct tree_node {
  binomial_tree tree;
  uint32_t place;
  buffer all, single;

  struct edge {
    uint32_t level, peer;
    message parts;
  };

  bool is_leaf() const { return tree.nodes_under(place) == 1; }
  uint64_t scratch_count() const { return place == 0 || is_leaf() ? 0 : tree.elements(place, tree.nodes_under(place)); }

  /// Where this rank has the blocks of `nodes` nodes from `first` on.
  message memory(uint32_t first, uint32_t nodes) const {
    if (place == 0)
      return tree.in_rank_order(all, first, nodes);
    return {block_range{is_leaf() ? single : buffer::scratch, tree.elements(place, first - place),
                        tree.elements(first, nodes)},
            block_range{}};
  }
  block_range own() const { return memory(place, 1)[0]; }

  std::vector<edge> children() const {
    std::vector<edge> result;
    for (uint32_t level = 0; level < tree.level_of(place) && place + (1u << level) < tree.size(); ++level) {
      const auto child = place + (1u << level);
      result.push_back({level, tree.rank_at(child), memory(child, tree.nodes_under(child))});
    }
    return result;
  }
  /// Not for the root.
  edge parent() const {
    const auto level = tree.level_of(place);
    return {level, tree.rank_at(place - (1u << level)),
            tree.parent_message(place, memory(place, tree.nodes_under(place))[0])};
  }
};

/// `up`: the gather, lowest level first; otherwise the scatter, highest first.
algorithm_cost cost_on_tree(const blocks& cut, uint32_t root, bool up) {
  const binomial_tree tree{cut, root};
  cost_counter counter{tree.size()};
  for (uint32_t round = 0; round < tree.levels(); ++round) {
    const auto distance = 1u << (up ? round : tree.levels() - 1 - round);
    for (uint64_t child = distance; child < tree.size(); child += 2 * uint64_t{distance}) {
      const auto place = static_cast<uint32_t>(child);
      const auto lower = tree.rank_at(place), upper = tree.rank_at(place - distance);
      const block_range subtree{buffer::scratch, 0, tree.elements(place, tree.nodes_under(place))};
      for (const auto& part : tree.parent_message(place, subtree))
        counter.send(up ? lower : upper, up ? upper : lower, part.count);
    }
    counter.end_round();
  }
  return counter.take();
}

} // namespace

schedule plan_tree_gather(const plan_request& request) {
  const auto cut = blocks::of(proto::GATHER, request, request.rank);
  const binomial_tree tree{cut, request.root};
  const tree_node node{tree, tree.place_of(request.rank), buffer::output, buffer::input};
  schedule_builder plan{request};
  plan.scratch(node.scratch_count());
  if (!node.is_leaf())
    plan.copy(0, {buffer::input, 0, cut.count(request.rank)}, node.own());
  for (const auto& child : node.children())
    for (const auto& part : child.parts)
      plan.recv(child.level, child.peer, part);
  if (node.place != 0)
    for (const auto parent = node.parent(); const auto& part : parent.parts)
      plan.send(parent.level, parent.peer, part);
  return plan.take(tree.levels());
}

schedule plan_tree_scatter(const plan_request& request) {
  const auto cut = blocks::of(proto::SCATTER, request, request.rank);
  const binomial_tree tree{cut, request.root};
  const tree_node node{tree, tree.place_of(request.rank), buffer::input, buffer::output};
  const auto round_of = [&](uint32_t level) { return tree.levels() - 1 - level; };
  schedule_builder plan{request};
  plan.scratch(node.scratch_count());
  if (node.place != 0)
    for (const auto parent = node.parent(); const auto& part : parent.parts)
      plan.recv(round_of(parent.level), parent.peer, part);
  for (const auto& child : node.children())
    for (const auto& part : child.parts)
      plan.send(round_of(child.level), child.peer, part);
  if (!node.is_leaf()) // one round after it has come
    plan.copy(tree.levels() - tree.level_of(node.place), node.own(), {buffer::output, 0, cut.count(request.rank)});
  return plan.take(tree.levels());
}

algorithm_cost cost_of_tree_gather(const plan_request& request) {
  return cost_on_tree(blocks::of(proto::GATHER, request, 0), request.root, true);
}

algorithm_cost cost_of_tree_scatter(const plan_request& request) {
  return cost_on_tree(blocks::of(proto::SCATTER, request, 0), request.root, false);
}

} // namespace ringmaster
