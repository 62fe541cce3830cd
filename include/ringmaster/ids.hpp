#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace ringmaster {

/// An integer that only mixes with integers of the same meaning.
template <class Tag>
struct strong_id {
  uint64_t value = 0; ///< The number.

  /// The next number, of what is counted.
  constexpr strong_id next() const { return {value + 1}; }

  /// Ordered by number.
  friend auto operator<=>(strong_id, strong_id) = default;
  /// The number in decimal digits.
  friend std::string to_string(strong_id x) { return std::to_string(x.value); }

  /// Serialisation hook of the library; programs do not call it.
  template <class Inspector>
  friend typename Inspector::result_type inspect(Inspector& f, strong_id& x) {
    return f(x.value);
  }
};

/// Identity of a device, given by the coordinator, never used twice. 0 is no device.
using device_id = strong_id<struct device_id_tag>;
/// Identity of a stream (or of a transfer, which is a stream of its own); unique in the cluster.
using stream_id = strong_id<struct stream_id_tag>;
/// Identity of a communicator, never used twice.
using communicator_id = strong_id<struct communicator_id_tag>;
/// Counts the changes of a communicator's membership, from 1. Messages of older epochs are dropped.
using epoch_number = strong_id<struct epoch_number_tag>;
/// Counts the operations of a communicator from 1, in the order of the calls.
using sequence_number = strong_id<struct sequence_number_tag>;
/// Identity of a node, given by the coordinator, never used twice. 0 is no node.
using node_id = strong_id<struct node_id_tag>;
/// An event of a device. The caller that records it chooses the number.
using event_id = strong_id<struct event_id_tag>;

} // namespace ringmaster

/// Hash of an id, for unordered containers.
template <class Tag>
struct std::hash<ringmaster::strong_id<Tag>> {
  /// The hash of its number.
  size_t operator()(ringmaster::strong_id<Tag> x) const { return std::hash<uint64_t>{}(x.value); }
};
