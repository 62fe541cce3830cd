#pragma once

#include "messages/ids.hpp"
#include "messages/journal.pb.h"

#include <optional>
#include <set>

namespace ringmaster {

/// Which ids of nodes, devices and communicators were ever given. None is given twice: the ledger outlives the
/// coordinator, which its supervisor may start again, and by marks in the journal its process. A mark is the highest id
/// that may have been given; it is written well before. After a process was killed, ids continue above the mark; after
/// one that exited in order, they continue where it stopped.
class id_ledger {
public:
  static constexpr uint64_t reserve = 1024; ///< Ids between the last one given and the mark.

  id_ledger() = default;
  explicit id_ledger(const proto::JournalState& known) { start_above(known); }

  /// Ids of earlier runs end here; new ones are above.
  void start_above(const proto::JournalState& known) {
    start_above(known.node_id(), known.device_id(), known.comm_id());
  }
  void start_above(const proto::IdsReserved& known) {
    start_above(known.node_id(), known.device_id(), known.comm_id());
  }

  node_id new_node();
  communicator_id new_communicator();
  /// The id that is wanted, if it was never given, or a new one.
  device_id new_device(device_id wanted);
  /// A device has chosen its own id.
  void taken(device_id id);

  /// Whether it may have been given, in this run or an earlier one.
  bool was_given(communicator_id id) const { return id != communicator_id{} && id <= given_.communicator; }

  /// Write it before more ids are given. None: the last mark is far enough ahead.
  std::optional<proto::Record> mark();
  /// The latest mark.
  proto::Record latest_mark() const { return record_of(marked_); }
  /// Write it at an orderly exit: the highest ids that were given.
  proto::Record last_mark() const { return record_of(given_); }

private:
  struct highest {
    node_id node;
    device_id device;
    communicator_id communicator;
  };
  static proto::Record record_of(const highest& x);
  void start_above(uint64_t node, uint64_t device, uint64_t communicator);

  highest given_;
  highest marked_;
  device_id floor_;             ///< Devices of earlier runs have ids up to here.
  std::set<device_id> devices_; ///< Above the floor: wanted ids leave gaps.
};

} // namespace ringmaster
