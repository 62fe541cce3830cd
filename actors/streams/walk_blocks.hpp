#pragma once

#include "actors/streams/route.hpp"
#include "runtime/schedule/collective.hpp"

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <set>

namespace ringmaster {

/// A block that is being read, and the step it is for.
struct block_reading {
  /// nullptr: of no step, but the input before the walk, or the output at the commit.
  const step* todo = nullptr;
  transfer_key key;
  std::unique_ptr<route> bytes;
  caf::strong_actor_ptr sender; ///< The stream that offered it; nullptr: this one.
  bool awaited = true;          ///< The sender waits to hear that it has been read.
};

/// The blocks of a collective that are sent and received in the current round.
struct walk_blocks {
  std::map<transfer_key, size_t> offered;         ///< Blocks that peers have not read: their steps.
  std::set<transfer_key> sent_along;              ///< Blocks that have left within their offers.
  std::map<transfer_key, size_t> awaited;         ///< Blocks that have not been offered yet: their steps.
  std::list<block_reading> ready;                 ///< Blocks that can be read now.
  std::map<transfer_key, block_reading> arriving; ///< Blocks whose bytes come without being read here.

  /// No block of the round is in flight.
  bool at_rest() const { return awaited.empty() && ready.empty() && arriving.empty() && offered.empty(); }

  void clear() {
    awaited.clear();
    ready.clear();
    arriving.clear();
    offered.clear();
    sent_along.clear();
  }

  /// Of blocks that have not ended: grows while bytes arrive without a message.
  uint64_t arrived() const {
    uint64_t result = 0;
    for (auto& x : arriving)
      result += x.second.bytes->arrived();
    return result;
  }

  /// Ranks that are to send blocks; if all have, ranks that are to read this one's.
  std::set<uint32_t> waits_for() const {
    std::set<uint32_t> result;
    for (auto& x : awaited)
      result.insert(x.first.source);
    for (auto& x : arriving)
      result.insert(x.first.source);
    if (result.empty())
      for (auto& x : offered)
        result.insert(x.first.destination);
    return result;
  }
};

} // namespace ringmaster
