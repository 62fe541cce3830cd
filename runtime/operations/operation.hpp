#pragma once

#include "messages/collective.pb.h"
#include "messages/errc.hpp"
#include "messages/wire_ids.hpp"
#include "runtime/invariants/ensure.hpp"

#include <caf/expected.hpp>

#include <chrono>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace ringmaster {

/// A device that has a rank.
struct rank_device {
  gpu_sim::DeviceMetadata metadata;
  bool lost = false;    ///< It waits for a spare, which is to hold what it held: its addresses matter as anybody's.
  bool dropped = false; ///< It has no rank any more: its addresses do not matter.

  device_id id() const { return id_of(metadata); }
};

/// One collective of a communicator, from the call to its end. Devices, epochs and sequences are ids of their own, as
/// everywhere in this room: they stand side by side in most calls. What merely counts, groups and limits, is a number.
struct operation {
  enum class phase { running, decided, cancelled };
  static constexpr uint64_t rank_groups = uint64_t{1} << 63; ///< The host's groups are numbered below.

  /// One rank's buffers.
  struct slot {
    device_id device;
    uint64_t input = 0;
    uint64_t output = 0;
    uint64_t buffer = 0; ///< In place: where the rank's one buffer starts.
    uint64_t input_bytes = 0;
    uint64_t output_bytes = 0;
  };

  proto::OperationPlan plan; ///< Over the ranks that are left, but for epoch and addresses.
  sequence_number sequence;
  uint64_t bytes = 0;      ///< Of one rank's larger buffer, at the call.
  std::vector<slot> slots; ///< In rank order; the lost ones are taken out.
  phase state = phase::running;
  epoch_number epoch;      ///< Whose plan the ranks have; 0: none that counts.
  uint32_t world_size = 0; ///< Of the attempt that counts.
  uint32_t attempts = 0;
  bool joint = false;       ///< The attempt is run for all ranks at once: a joint operation.
  bool moving = false;      ///< And its data is on the way.
  bool may_wait = false;    ///< Nobody waits for the answer to the call: its plan may go with those of calls behind it.
  bool walks_alone = false; ///< But it is not to be walked as one with them.
  std::chrono::nanoseconds limit{0}; ///< For all of it; 0: none.
  uint64_t limit_number = 0;
  uint64_t group = 0;          ///< What it was called in, ranks' groups from `rank_groups` on; 0: in no group.
  sequence_number leader;      ///< The first of those that it is fused with, for good: they share one fate. 0: none.
  sequence_number packed_with; ///< The first of those of them that are walked as one with it. 0: none.
  uint64_t called_ns = 0;      ///< Wall clock, as the next one.
  uint64_t started_ns = 0;
  std::set<device_id> finished;
  std::set<device_id> committed;
  caf::error error; ///< Of a cancelled one.

  const proto::Collective& what() const { return plan.collective(); } ///< Over the ranks that are left.
  bool in_place() const { return plan.in_place(); }
  bool was_called_by_ranks() const { return group >= rank_groups; } ///< Each of which is answered.
  std::vector<slot>::iterator slot_of(device_id device);
  /// Sizes, and addresses in place, for the ranks that are left.
  void lay_out();
  /// Whether every input lies apart from its rank's output, or where `in_place` has it. Not so where gathering ranks
  /// have closed up: a block that is still to be read lies where another one belongs.
  bool is_in_its_place() const;
  /// Removes the rank, its counts and its factors. Error: device_lost, if the operation cannot go on without it.
  caf::error drop(device_id device);
  /// A new attempt begins, over the ranks of `in_epoch`.
  void begin(epoch_number in_epoch, uint32_t ranks, uint64_t unix_ns);
  /// The attempt's plan, with the addresses.
  proto::OperationPlan plan_of_attempt() const;
};

/// An operation of these ranks, with every address within its rank's memory and no input overlapping its output but as
/// in-place operations do. `algorithm`: the request's own, or what was picked for it. Errors: invalid_argument,
/// out_of_range; the text names rank and values.
caf::expected<operation> make_operation(const proto::CollectiveRequest& request, const std::string& algorithm,
                                        std::span<const rank_device> ranks);

} // namespace ringmaster
