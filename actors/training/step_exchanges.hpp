#pragma once

#include "actors/training/group_calls.hpp"
#include "actors/training/trainer_settings.hpp"
#include "training/computed/exchange_desk.hpp"

#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace ringmaster::training {

/// An attempt at a step: its ranks' actors, by rank, and their communicators.
struct running_step {
  uint64_t attempt = 0;
  uint64_t step = 0;
  std::vector<device_id> devices;
  std::vector<rank_actor> ranks;
  std::shared_ptr<group_calls> calls;

  uint32_t world_size() const { return static_cast<uint32_t>(ranks.size()); }
};

/// The communicators of a step over these devices, by a strategy with these sides.
std::shared_ptr<group_calls> make_group_calls(trainer_actor::pointer self, const trainer_settings& settings,
                                              const std::vector<device_id>& devices, const step_setting& sides);

/// Whether an attempt continues, and what becomes of it, for those that move its data.
struct attempt_events {
  /// Whether ranks still work on this attempt.
  std::function<bool(uint64_t attempt)> is_current;
  /// Data has moved.
  std::function<void()> progress;
  /// The attempt cannot be finished.
  std::function<void(const caf::error&)> failed;
};

/// How the ranks of a step communicate: an operation starts on a communicator when all of its ranks have arrived and
/// have memory for its result. Lives in the TRAINER.
class step_exchanges {
public:
  step_exchanges(trainer_actor::pointer self, attempt_events events) : self_(self), events_(std::move(events)) {}
  step_exchanges(const step_exchanges&) = delete;

  void start(std::shared_ptr<const running_step> step);
  /// Whether a rank of a world of this size can arrive like this.
  static bool is_possible(const rank_arrival& x, uint32_t world_size);
  /// Whether the rank was asked for memory by this number.
  bool is_awaited(const room_found& x) const { return rooms_.contains({x.rank, x.number}); }
  /// The operation starts with the next `flush`. Errors: invalid_argument, for what no program may do.
  caf::error arrive(rank_arrival& x);
  void found(const room_found& x);
  /// The operations that one message has completed start together.
  void flush();

  /// "rank 0 waits for ranks 1, 2 to call all_reduce of the ..."; none: no rank waits for another.
  std::optional<std::string> waiting() const { return desk_.waiting(); }
  const exchange_desk& desk() const { return desk_; }

private:
  /// All ranks have arrived, but not all know where their result will be.
  struct open_exchange {
    exchange_desk::exchange all;
    size_t rooms_awaited = 0;
  };

  void exchange(exchange_desk::exchange all);
  void run(exchange_desk::exchange all);

  trainer_actor::pointer self_;
  attempt_events events_;
  std::shared_ptr<const running_step> step_;
  exchange_desk desk_;
  std::map<uint64_t, open_exchange> open_;
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> rooms_; ///< By rank and its number: the open exchange.
  uint64_t exchanges_ = 0;
};

} // namespace ringmaster::training
