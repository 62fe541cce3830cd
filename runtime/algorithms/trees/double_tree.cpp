#include "runtime/algorithms/trees/trees.hpp"

#include "runtime/algorithms/parts/pieces.hpp"
#include "runtime/algorithms/trees/two_trees.hpp"

#include <array>

namespace ringmaster {

namespace {

/// The half of the elements that takes `tree`. Both are cut into pieces of one size.
pieces half(const plan_request& request, uint32_t tree) {
  const auto larger = block_of(buffer::output, request.count, 2, 0).count;
  const auto range = block_of(buffer::output, request.count, 2, tree);
  return {range.offset, range.count, pieces::chunk_of(request, larger)};
}

/// One rank's part.
struct double_tree {
  schedule_builder b;
  uint32_t root;
  two_trees trees{b.request.world_size};
  std::array<pieces, 2> halves{half(b.request, 0), half(b.request, 1)};

  uint32_t size() const { return b.request.world_size; }
  uint32_t number() const { return (b.request.rank + (size() - root)) % size(); }
  uint32_t rank_of(uint32_t number) const { return static_cast<uint32_t>((uint64_t{number} + root) % size()); }
  bool is_root() const { return b.request.rank == root; }
  bool is_inner(uint32_t tree) const { return trees.children(tree, number())[0] != 0; }
  uint32_t rounds() const { return trees.last_arrival() + 2 * halves[0].size() - 1; }

  /// `source`: where the root has the elements.
  void broadcast(uint32_t first_round, buffer source) {
    for (uint32_t tree : {0, 1})
      for (uint32_t index = 0; index < halves[tree].size(); ++index) {
        auto round_of = [&](uint32_t child) { return first_round + trees.arrival(tree, child) + 2 * index; };
        if (!is_root())
          b.recv(round_of(number()), rank_of(trees.parent(tree, number())), halves[tree].at(buffer::output, index));
        for (auto child : trees.children(tree, number()))
          if (child != 0)
            b.send(round_of(child), rank_of(child), halves[tree].at(is_root() ? source : buffer::output, index));
      }
  }

  /// From round 0. `sums`: of each tree.
  void reduce(const std::array<piece_sums, 2>& sums) {
    for (uint32_t tree : {0, 1})
      for (uint32_t index = 0; index < halves[tree].size(); ++index) {
        auto round_of = [&](uint32_t child) { return trees.last_arrival() - trees.arrival(tree, child) + 2 * index; };
        const auto sum = sums[tree].at(halves[tree], index);
        auto own = halves[tree].at(buffer::input, index);
        const auto& children = trees.children(tree, number());
        for (auto child = children.rbegin(); child != children.rend(); ++child)
          if (*child != 0) {
            b.recv_reduce(round_of(*child), rank_of(*child), own, sum, is_root());
            own = sum;
          }
        if (!is_root())
          b.send(round_of(number()), rank_of(trees.parent(tree, number())), own);
      }
  }
};

/// `down`, `up`: how often the elements go from the root to all and from all to the root.
algorithm_cost cost(const plan_request& request, uint64_t down, uint64_t up) {
  const two_trees trees{request.world_size};
  const std::array<pieces, 2> halves{half(request, 0), half(request, 1)};
  const auto rounds = (down + up) * (trees.last_arrival() + 2 * halves[0].size() - 1);
  algorithm_cost result{rounds, 0, 0, rounds, rounds * halves[0].chunk()};
  for (uint32_t number = 0; number < request.world_size; ++number) {
    uint64_t elements = 0, sent = 0, received = 0;
    for (uint32_t tree : {0, 1}) {
      const auto& [first, second] = trees.children(tree, number);
      const uint64_t below = (first != 0 ? 1 : 0) + (second != 0 ? 1 : 0);
      const uint64_t above = number == 0 ? 0 : 1;
      elements += (down * below + up * above) * block_of(buffer::output, request.count, 2, tree).count;
      sent += (down * below + up * above) * halves[tree].size();
      received += (down * above + up * below) * halves[tree].size();
    }
    result.elements = std::max(result.elements, elements);
    result.messages = std::max({result.messages, sent, received});
  }
  return result;
}

} // namespace

schedule plan_double_tree_broadcast(const plan_request& request) {
  double_tree t{schedule_builder{request}, request.root};
  t.broadcast(0, buffer::input);
  if (t.is_root())
    t.b.copy(0, {buffer::input, 0, request.count}, {buffer::output, 0, request.count});
  return t.b.take(t.rounds());
}

algorithm_cost cost_of_double_tree_broadcast(const plan_request& request) {
  return cost(request, 1, 0);
}

schedule plan_double_tree_reduce(const plan_request& request) {
  double_tree t{schedule_builder{request}, request.root};
  std::array<piece_sums, 2> sums{piece_sums::in_output(), piece_sums::in_output()};
  for (uint32_t tree : {0, 1})
    if (t.is_inner(tree) && !t.is_root())
      sums[tree] = piece_sums::in_scratch(t.b, t.halves[tree]);
  t.reduce(sums);
  return t.b.take(t.rounds());
}

algorithm_cost cost_of_double_tree_reduce(const plan_request& request) {
  return cost(request, 0, 1);
}

schedule plan_double_tree_all_reduce(const plan_request& request) {
  double_tree t{schedule_builder{request}, 0};
  t.reduce({piece_sums::in_output(), piece_sums::in_output()});
  t.broadcast(t.rounds(), buffer::output);
  return t.b.take(2 * t.rounds());
}

algorithm_cost cost_of_double_tree_all_reduce(const plan_request& request) {
  return cost(request, 1, 1);
}

} // namespace ringmaster
