#pragma once

#include <fmt/core.h>

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace ringmaster {

/// An integer that only mixes with integers of the same meaning.
template <class Tag>
struct strong_id {
  uint64_t value = 0;

  /// For ids that count: the next number.
  constexpr strong_id next() const { return {value + 1}; }

  friend auto operator<=>(strong_id, strong_id) = default;
  friend std::string to_string(strong_id x) { return std::to_string(x.value); }

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
/// Counts the changes of a communicator's membership from 1; what carries an older one is dropped.
using epoch_number = strong_id<struct epoch_number_tag>;
/// Counts the operations of a communicator from 1, in the order of the calls.
using sequence_number = strong_id<struct sequence_number_tag>;
/// Identity of a node, given by the coordinator, never used twice. 0 is no node.
using node_id = strong_id<struct node_id_tag>;
/// An event of a device, by the number that its recorder has given it.
using event_id = strong_id<struct event_id_tag>;

} // namespace ringmaster

/// Formatted as its number is: "device 0x{:x}".
template <class Tag>
struct fmt::formatter<ringmaster::strong_id<Tag>> : fmt::formatter<uint64_t> {
  template <class Context>
  auto format(ringmaster::strong_id<Tag> x, Context& context) const {
    return fmt::formatter<uint64_t>::format(x.value, context);
  }
};

template <class Tag>
struct std::hash<ringmaster::strong_id<Tag>> {
  size_t operator()(ringmaster::strong_id<Tag> x) const { return std::hash<uint64_t>{}(x.value); }
};
