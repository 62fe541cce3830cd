#pragma once

#include "actors/training/interfaces.hpp"

#include <functional>
#include <map>
#include <vector>

namespace ringmaster::training {

/// Collects the bytes of parts of the model from ranks: for the host's snapshot, or for a rank that has them cut in
/// another way. Several collections may be under way at once, of several steps. Lives in the TRAINER.
class part_gatherings {
public:
  struct source {
    kept_part what;
    device_id device;
    rank_actor rank;
  };
  using found_parts = std::map<kept_part, byte_block>;
  using done_function = std::function<void(const caf::expected<found_parts>&)>;

  /// `has_nothing` is called for a device that was asked for a part of the model as of that step, and does not have it
  /// any longer, or does not answer.
  part_gatherings(trainer_actor::pointer self, std::function<void(device_id, uint64_t step)> has_nothing)
    : self_(self), has_nothing_(std::move(has_nothing)) {}
  part_gatherings(const part_gatherings&) = delete;

  /// `then` gets these parts of the model as it was before that step, and `available` with them. Errors: device_lost,
  /// with a rank that does not have its part, or does not answer before `due`.
  void gather(uint64_t step, found_parts available, const std::vector<source>& from, caf::actor_clock::time_point due,
              done_function then);
  /// Requests whose limit has passed fail.
  void expire();
  /// This process was paused for so long that limits are extended by this time.
  void excuse(caf::timespan late);

private:
  struct gathering {
    uint64_t step = 0;
    caf::actor_clock::time_point due{};
    done_function then{};
    found_parts found{};
    std::map<kept_part, device_id> awaited{};
    caf::error problem{};
  };

  void arrived(uint64_t number, const kept_part& what, const byte_block& x);
  void failed(uint64_t number, const kept_part& what, std::string_view why);
  void finish(uint64_t number);

  trainer_actor::pointer self_;
  std::function<void(device_id, uint64_t step)> has_nothing_;
  std::map<uint64_t, gathering> all_; ///< By number.
  uint64_t made_ = 0;
};

} // namespace ringmaster::training
