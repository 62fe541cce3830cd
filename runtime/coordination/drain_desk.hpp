#pragma once

#include "runtime/coordination/communicator_registry.hpp"
#include "runtime/coordination/device_registry.hpp"

#include <caf/error.hpp>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ringmaster {

/// Nodes that are to end: nobody gets their devices, their ranks leave their communicators, and when all have the node
/// is told to end. The coordinator's; it changes the registry of devices, and sends nothing: after every event that may
/// have freed or brought devices it says what is to be done for a node.
///
///   asked --all its devices are in no communicator--> told to end --its process is gone--> answered
///     \_ the limit of the last that waits passes: not draining any more
class drain_desk {
public:
  using number = uint64_t; ///< Of somebody who waits for an answer.

  struct step {
    /// These communicators are to let these devices go: `answered` says what came of it.
    std::map<communicator_id, std::vector<device_id>> ask;
    bool end_node = false;
  };

  drain_desk(device_registry& devices, const communicator_registry& communicators)
    : devices_(devices), communicators_(communicators) {}

  /// The node is there.
  void begin(node_id node, number who);
  std::vector<node_id> nodes() const;
  step next(node_id node);
  /// The communicator has let these devices go. After a problem it is asked again at the next event.
  void answered(node_id node, communicator_id communicator, const std::vector<device_id>& devices, epoch_number epoch,
                const caf::error& problem);

  struct ending {
    std::vector<number> to;
    std::vector<std::string> done; ///< A line for each communicator that goes on.
    bool told = false;             ///< It was told to end; else it went before that.
  };
  /// Whether it was told to end; also of one that is gone, whose devices' ends may come behind it.
  bool is_given(node_id node) const;
  /// The node is gone. None: it was not to end.
  std::optional<ending> gone(node_id node);
  /// The limit has passed. None: it has been answered. Else what was waited for.
  std::optional<std::string> expired(number who);

private:
  struct drain {
    std::set<number> waiting;
    std::set<communicator_id> asked;
    std::map<communicator_id, caf::error> problems;
    std::vector<std::string> done;
    bool told = false;
  };

  std::map<communicator_id, std::vector<device_id>> communicators_of(node_id node) const;
  std::string waits_for(node_id node, const drain& x) const;
  bool replaces(communicator_id communicator) const;

  device_registry& devices_;
  const communicator_registry& communicators_;
  std::map<node_id, drain> drains_;
  std::set<node_id> drained_; ///< Gone, as they were told. An id is never used twice.
};

} // namespace ringmaster
