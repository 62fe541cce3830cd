#pragma once

#include "actors/training/interfaces.hpp"

#include <functional>
#include <map>
#include <vector>

namespace ringmaster::training {

/// Parts of the model by their bytes, on their way from ranks to the host: for its image, or for a rank that has them
/// cut otherwise. Several may be under way at once, of several steps. Lives in the TRAINER.
class part_gatherings {
public:
  struct source {
    kept_part what;
    device_id device;
    rank_actor rank;
  };
  using found_parts = std::map<kept_part, byte_block>;
  using done_function = std::function<void(const caf::expected<found_parts>&)>;

  /// `has_nothing` is told of a device that was asked for the model as of that step, and has not got what it once had,
  /// is gone, or does not answer.
  part_gatherings(trainer_actor::pointer self, std::function<void(device_id, uint64_t step)> has_nothing)
    : self_(self), has_nothing_(std::move(has_nothing)) {}
  part_gatherings(const part_gatherings&) = delete;

  /// `then` gets what these ranks keep of them from the beginning of that step, beside what is there. Errors:
  /// device_lost, where whoever has a part has nothing, or does not answer before `due`; it names one.
  void gather(uint64_t step, found_parts there, const std::vector<source>& from, caf::actor_clock::time_point due,
              done_function then);
  /// Those whose limit has passed.
  void expire();
  /// So much of the time nobody could hear.
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

  void came(uint64_t number, const kept_part& what, const byte_block& x);
  void did_not_come(uint64_t number, const kept_part& what, std::string_view why);
  void end(uint64_t number);

  trainer_actor::pointer self_;
  std::function<void(device_id, uint64_t step)> has_nothing_;
  std::map<uint64_t, gathering> all_; ///< By number, in their order.
  uint64_t made_ = 0;
};

} // namespace ringmaster::training
