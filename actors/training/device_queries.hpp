#pragma once

#include "actors/training/interfaces.hpp"
#include "actors/training/steps/step_change.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ringmaster::training {

/// What the TRAINER asks the coordinator about devices: which are free, lost, or on a node that is drained. Lives in
/// the TRAINER.
class device_queries {
public:
  /// `limit`: for an answer.
  device_queries(trainer_actor::pointer self, coordinator_actor coordinator, caf::timespan limit)
    : self_(self), coordinator_(std::move(coordinator)), limit_(limit) {}
  device_queries(const device_queries&) = delete;

  /// Whether this error says that a device is lost.
  static bool is_loss(const caf::error& problem);
  /// `then` gets how the coordinator lost the device; none: it has the device, or does not answer.
  void ask_whether_lost(device_id device, std::function<void(const caf::error&)> then);
  /// `then` gets at most this number of devices that are free, or were when it answered; nothing if it does not answer,
  /// or while another such request is under way.
  void find_free(uint32_t count_max, std::function<void(const std::vector<device_id>&)> then);
  /// While the run has fewer ranks than it wants: `add` gets free devices, one by one. If the run was `required` to
  /// find devices before its first step, and there are too few, `failed` gets the reason.
  void find_missing(const step_change& change, bool required, std::function<void(device_id)> add,
                    std::function<void(const caf::error&)> failed);
  /// `then` gets the devices on nodes that are drained, and why each leaves; nothing if it does not answer.
  void find_drained(std::function<void(const std::map<device_id, std::string>&)> then);

private:
  trainer_actor::pointer self_;
  coordinator_actor coordinator_;
  caf::timespan limit_;
  bool searching_ = false;
  bool required_ = false; ///< The run has too few devices for its first step: other clients took some.
};

} // namespace ringmaster::training
