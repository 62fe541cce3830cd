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
  bool lost = false;    ///< It waits for a spare that will hold its data: its addresses are checked.
  bool dropped = false; ///< It has lost its rank: its addresses are not checked.

  device_id id() const { return id_of(metadata); }
};

/// One collective of a communicator, from the call to its end:
///
///   running --all ranks have finished it, or its data moves in shared memory--> decided --all have committed--> ended
///     +-- cancelled --all streams have stopped--> ended with `error`
struct operation {
  enum class phase { running, decided, cancelled };
  static constexpr uint64_t rank_groups = uint64_t{1} << 63; ///< The host's groups have smaller numbers.

  /// One rank's buffers.
  struct slot {
    device_id device;
    uint64_t input = 0;
    uint64_t output = 0;
    uint64_t buffer = 0; ///< In place: where the rank's one buffer starts.
    uint64_t input_bytes = 0;
    uint64_t output_bytes = 0;
  };

  proto::OperationPlan plan; ///< Over the remaining ranks, without epoch and addresses.
  sequence_number sequence;
  uint64_t bytes = 0;      ///< Of one rank's larger buffer, at the call.
  std::vector<slot> slots; ///< In rank order, without lost ranks.
  phase state = phase::running;
  epoch_number epoch;      ///< Of the attempt that counts; 0: none does.
  uint32_t world_size = 0; ///< Of the attempt that counts.
  uint32_t attempts = 0;
  bool joint = false;    ///< The attempt is a shared-memory operation.
  bool moving = false;   ///< Its data is being moved in shared memory.
  bool may_wait = false; ///< The caller does not wait for the answer: the plan may be sent with those of later calls.
  bool walks_alone = false;          ///< It is not walked as one with them.
  std::chrono::nanoseconds limit{0}; ///< For the whole operation; 0: none.
  uint64_t limit_number = 0;
  uint64_t group = 0;          ///< Of calls; ranks' groups from `rank_groups` on; 0: none.
  sequence_number leader;      ///< The first of the operations that it is fused with; they end alike. 0: none.
  sequence_number packed_with; ///< The first of those that are walked as one with it. 0: none.
  uint64_t called_ns = 0;      ///< Wall clock, like the next one.
  uint64_t started_ns = 0;
  std::set<device_id> finished;
  std::set<device_id> committed;
  caf::error error; ///< Of a cancelled one.

  const proto::Collective& what() const { return plan.collective(); } ///< Over the remaining ranks.
  bool in_place() const { return plan.in_place(); }
  bool was_called_by_ranks() const { return group >= rank_groups; } ///< Each of which is answered.
  std::vector<slot>::iterator slot_of(device_id device);
  /// Computes sizes, and addresses in place, for the remaining ranks.
  void lay_out();
  /// Whether every input is separate from its rank's output, or at the place of `in_place`. False after ranks of a
  /// gather have moved up: a block that is still to be read is where another one belongs.
  bool is_in_its_place() const;
  /// Removes the rank, its counts and its factors. Error: device_lost, if the operation cannot go on without it.
  caf::error drop(device_id device);
  /// A new attempt starts, over the ranks of `in_epoch`.
  void begin(epoch_number in_epoch, uint32_t ranks, uint64_t unix_ns);
  /// The attempt's plan, with the addresses.
  proto::OperationPlan plan_of_attempt() const;
};

/// An operation of these ranks. Every address is within its rank's memory, and no input overlaps its output unless the
/// operation is in place. `algorithm`: the requested one, or the one that was picked. Errors: invalid_argument,
/// out_of_range; the text names rank and values.
caf::expected<operation> make_operation(const proto::CollectiveRequest& request, const std::string& algorithm,
                                        std::span<const rank_device> ranks);

} // namespace ringmaster
