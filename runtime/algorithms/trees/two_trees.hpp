#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace ringmaster {

/// Two binary trees over N ranks, and when their links are used. What the double tree's schedules are made of; its
/// algorithm is described in trees.hpp.
///
/// Ranks are numbers here: 0 is above both trees and has their tops as its children. The others, 1 to N-1, are the
/// nodes of both trees and have at most two children, all of them in one of the two trees.
///
/// The first tree is the in-order binary tree: odd numbers are leaves, and the number of zero bits at the end is the
/// height. The second has the same shape, for the numbers mirrored (v -> N-v) if N-1 is even, and shifted by one
/// otherwise: odd numbers are inside, even ones leaves.
///
/// Every link is used in every second round. A number has at most two links from above, one in each tree, and at most
/// two to below; of two such links, one is used in even rounds and one in odd rounds. So in a round, no rank sends or
/// receives more than one piece. Such a colouring exists since links which share a sender or a receiver form
/// only paths and cycles of even length; it is made by following these.
class two_trees {
public:
  explicit two_trees(uint32_t size);

  uint32_t parent(uint32_t tree, uint32_t number) const { return parents_[tree][number]; }

  /// In the order in which they receive a piece; 0: there is no such child.
  const std::array<uint32_t, 2>& children(uint32_t tree, uint32_t number) const { return children_[tree][number]; }

  /// The round in which `number` > 0 receives the first piece, on the way down: as early as the links above allow.
  uint32_t arrival(uint32_t tree, uint32_t number) const { return arrivals_[tree][number]; }

  /// The largest of them: at most 2 x ceil(log2 N) - 1.
  uint32_t last_arrival() const { return last_arrival_; }

private:
  void place(uint32_t size);
  void colour_from(uint32_t tree, uint32_t number, uint8_t colour);
  uint32_t arrive(uint32_t tree, uint32_t number);

  template <class T>
  using in_both = std::array<std::vector<T>, 2>;

  static constexpr uint8_t uncoloured = 2;
  static constexpr uint32_t unknown = UINT32_MAX;

  in_both<uint32_t> parents_;
  in_both<std::array<uint32_t, 2>> children_;
  in_both<uint8_t> colours_; ///< Of the link from above: 0 is for even rounds, 1 for odd ones.
  in_both<uint32_t> arrivals_;
  uint32_t last_arrival_ = 0;
};

} // namespace ringmaster
