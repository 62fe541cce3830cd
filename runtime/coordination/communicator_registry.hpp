#pragma once

#include "messages/ids.hpp"
#include "messages/metadata.pb.h"
#include "messages/types.pb.h"
#include "runtime/coordination/id_ledger.hpp"

#include <caf/actor_control_block.hpp>
#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ringmaster {

struct known_communicator {
  caf::strong_actor_ptr handle; ///< For sending; not looked into.
  proto::FailurePolicy policy = proto::SHRINK;
  bool deterministic = false;
  bool outlives_client = false;
  std::string name;            ///< For people; may be empty.
  uint64_t operations_met = 0; ///< That its ranks have run in their mailbox, as far as they have reported.
  uint64_t met_ended_ns = 0;   ///< Wall clock: the end of the latest of these.
  std::set<device_id>
    lost{}; ///< Devices whose places wait for a spare, which may want the host's copies of their inputs.
  proto::StoredCommunicator stored{}; ///< As the coordinator's store has it.
};

/// The communicators that are alive, and why others failed.
class communicator_registry {
public:
  /// `alive_max`: the limit at any time.
  explicit communicator_registry(size_t alive_max = 4096,
                                 std::shared_ptr<id_ledger> ids = std::make_shared<id_ledger>())
    : alive_max_(alive_max), ids_(std::move(ids)) {}

  /// Whether that many more may be made. Errors: too_many, with the numbers.
  caf::error admit(size_t more) const;
  communicator_id new_id();
  void made(communicator_id id, known_communicator what);
  /// `reason`: why it failed, kept for `known`; none if it was destroyed. Returns none if it has ended before.
  std::optional<known_communicator> ended(communicator_id id, const caf::error& reason);

  /// It could not be built again after the coordinator was restarted.
  void failed(communicator_id id, const caf::error& reason) { failed_[id] = reason; }
  /// Of one that is alive; null: it is not.
  proto::StoredCommunicator* stored(communicator_id id);
  /// Those that a call has made, by their colour.
  std::vector<communicator_id> made_by(uint64_t caller, uint64_t call_number) const;

  const std::map<communicator_id, known_communicator>& alive() const { return alive_; }
  /// Null: it is not alive.
  const known_communicator* find(communicator_id id) const;
  /// Errors: unknown_communicator, saying whether and how it has ended.
  caf::expected<const known_communicator*> known(communicator_id id) const;

  /// Its ranks have run that many more operations in their mailbox; the last one ended at `ended_ns`.
  void met(communicator_id id, uint64_t operations, uint64_t ended_ns);

  /// Whether it was destroyed on request; it did not fail.
  bool was_destroyed(communicator_id id) const;

  // -- the policy "replace" --

  /// Whether the policy of all of these is "replace": then a spare may need what the host copied to their devices.
  bool all_replace(const std::set<communicator_id>& ids) const;
  /// A member of these is lost; until `place_filled` its inputs are wanted.
  void member_lost(device_id device, const std::set<communicator_id>& ids);
  void place_filled(device_id device, communicator_id id);
  /// Whether a place anywhere waits for the device's inputs.
  bool inputs_wanted(device_id device) const;

private:
  size_t alive_max_;
  std::shared_ptr<id_ledger> ids_;
  std::map<communicator_id, known_communicator> alive_;
  std::map<communicator_id, caf::error> failed_; ///< The latest of those that failed, and why.
};

} // namespace ringmaster
