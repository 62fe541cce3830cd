#pragma once

#include "actors/training/interfaces.hpp"
#include "actors/training/messages.hpp"
#include "actors/training/trainer_settings.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace ringmaster::training {

/// The ranks' actors, by device: how they are started, monitored and stopped. Lives in the TRAINER.
class rank_actors {
public:
  rank_actors(trainer_actor::pointer self, std::shared_ptr<const trainer_settings> settings)
    : self_(self), settings_(std::move(settings)) {}
  rank_actors(const rank_actors&) = delete;

  bool contains(device_id device) const { return all_.contains(device); }
  const rank_actor& at(device_id device) const;
  /// Why the rank that reports this cannot take part: what it says, or settings other than this process's; none: it
  /// can.
  caf::error problem_of(const rank_ready& x) const;

  /// Starts the rank of this device.
  void start(device_id device, uint32_t place);
  /// The rank of this device was started by its own process.
  void add(device_id device, rank_actor rank);
  /// Forgets the rank that has exited, and returns its device; none: it does not take part any longer.
  std::optional<device_id> exited(const caf::down_msg& x);
  /// Stops the rank, unless it has exited or was never reported.
  void stop(device_id device, const std::string& why);
  /// The rank frees its memory and exits, in good order.
  void release(device_id device);
  /// All of them do. Then `done` is called.
  void release_all(const std::function<void()>& done);

private:
  /// For a rank to free its memory.
  static constexpr caf::timespan release_limit = std::chrono::seconds{5};

  void release(const rank_actor& rank, std::function<void()> done);

  trainer_actor::pointer self_;
  std::shared_ptr<const trainer_settings> settings_;
  std::map<device_id, rank_actor> all_;
};

} // namespace ringmaster::training
