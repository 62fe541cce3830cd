#pragma once

#include "messages/ids.hpp"
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

namespace ringmaster {

struct known_communicator {
  caf::strong_actor_ptr handle; ///< For whoever sends; not looked into.
  proto::FailurePolicy policy = proto::SHRINK;
  bool deterministic = false;
  bool outlives_client = false;
  std::string name;            ///< For people; empty: it has none.
  uint64_t operations_met = 0; ///< That its ranks have done on their page, as far as they have said.
  uint64_t met_ended_ns = 0;   ///< Wall clock, of the latest of these.
  std::set<device_id>
    lost; ///< Devices whose places wait for a spare, which may want the host's copies of their inputs.
};

/// The communicators that are alive, and how those that failed ended. The coordinator's.
class communicator_registry {
public:
  /// `alive_max`: at once.
  explicit communicator_registry(size_t alive_max = 4096,
                                 std::shared_ptr<id_ledger> ids = std::make_shared<id_ledger>())
    : alive_max_(alive_max), ids_(std::move(ids)) {}

  /// Whether there is room. Errors: too_many, with the numbers.
  caf::error admit(size_t more) const;
  communicator_id new_id() { return ids_->new_communicator(); }
  void made(communicator_id id, known_communicator what) { alive_[id] = std::move(what); }
  /// `reason`: why it failed, kept for `known`; none where it was asked to end. Returns none if it has ended before.
  std::optional<known_communicator> ended(communicator_id id, const caf::error& reason);

  const std::map<communicator_id, known_communicator>& alive() const { return alive_; }
  /// Null: it is not alive.
  const known_communicator* find(communicator_id id) const;
  /// Errors: unknown_communicator, saying whether and how it has ended.
  caf::expected<const known_communicator*> known(communicator_id id) const;

  /// Its ranks have done so many more operations on their page, the last by then.
  void met(communicator_id id, uint64_t operations, uint64_t ended_ns);

  // -- the policy "replace" --

  /// Whether a spare may want what the host has copied to a device that is in these: the policy of all of them says so.
  bool all_replace(const std::set<communicator_id>& ids) const;
  /// A member of these is lost; until `place_filled` its inputs are wanted.
  /// Somebody has wished its end, which has come; it did not fail.
  bool was_destroyed(communicator_id id) const;
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
