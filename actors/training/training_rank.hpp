#pragma once

#include "actors/movers/shared_memory_movers.hpp"
#include "actors/training/rank_memory.hpp"
#include "training/computed/rank_computation.hpp"

#include <chrono>
#include <optional>
#include <vector>

namespace ringmaster::training {

/// For a node to restart a device that a rank has lost. After that the rank exits.
constexpr caf::timespan rejoin_limit = std::chrono::seconds{10};

/// By the steady clock, which is this process's own.
double seconds_now();

struct rank_settings {
  std::shared_ptr<const training_job> job;
  coordinator_actor coordinator;
  trainer_actor trainer;
  device_id device;
  uint32_t place = 0;                       ///< Ranks of a step are in the order of their places.
  uint64_t memory_bytes = 0;                ///< Of the device, for values; 0: all of it.
  std::vector<std::string> shared_settings; ///< As in trainer_settings.
  bool helps = false;                       ///< It has a thread of its own, which runs other actors while it waits.
  caf::timespan request_limit = std::chrono::seconds{10};
};

/// The state of a RANK: the executor of its strategy's program. Operations that need no other rank are computed at
/// once, in the actor's thread. For others it reports its arrival to the trainer, and continues when the answer comes.
class training_rank_state : public executor {
public:
  static inline const char* name = "training-rank";

  ~training_rank_state() override;

  rank_actor::pointer self = nullptr;

  void start(rank_settings settings);
  void begin(const step_order& x);
  void exchanged(const exchange_ended& x);
  void make_room(const room_wanted& x);
  void restored(const part_found& x);
  uint64_t abandon(uint64_t attempt);
  caf::result<uint64_t> leave();
  /// Continues after other messages were handled.
  void go_on(uint64_t attempt);
  byte_block part(const part_request& x) const;
  uint64_t address_of(const part_sought& x) const;

  // The strategy's program calls these.
  bool begin(pending& x) override;
  bool await(pending& x) override;
  void fail(uint32_t rank, caf::error why) override;
  bool failed() const override { return stopped_; }
  void release(uint32_t, uint64_t memory) noexcept override { store_->release(memory); }

private:
  /// It polls for an answer this long before it sleeps: ranks with equal work arrive soon, and waking a thread on
  /// another core takes 23 to 80 us twice (two-phase waiting: Karlin, Li, Manasse and Owicki, Empirical studies of
  /// competitive spinning, 1991). It yields to threads that wait for a processor.
  static constexpr std::chrono::microseconds polls_for{500};

  struct open_exchange {
    pending* of; ///< Null: no operation waits for it.
    rank_computation::transfer data;
    double begun = 0;
    uint64_t held = 0; ///< Bytes in use at `begun`.
  };

  /// `problem` none: it has its memory.
  void ready(const caf::error& problem);
  void down(const caf::down_msg& x);
  /// Exits. It stops monitoring first: actors that it monitors live on, and would keep its memory.
  void quit();
  bool exchange(pending& x);
  /// Parts that the operation loads have to come from elsewhere.
  void load(pending& x, const std::vector<kept_part>& missing);
  /// Reports the communications that were started one after the other, in one message.
  void report_arrivals();
  /// Reports what the program has done so far.
  void report();
  /// The same; then runs the actors that handle the report, up to the answer, if it comes; then polls for it for a
  /// while, and for as long as the process's communicators have slices that it can move.
  void report_and_help();
  void end(pending& x);
  void fail(const pending& x, const caf::error& why);
  /// Continues the program at that place.
  void run(std::coroutine_handle<> next);
  void stop();
  void note(const pending& x, double begun, double ended, uint64_t held);

  rank_settings settings_;
  std::optional<rank_memory> memory_;
  std::optional<value_store> store_;
  std::optional<rank_computation> computation_;
  step_order order_;
  model shape_; ///< Of the step.
  std::optional<rank> rank_;
  strategy program_;
  bool stopped_ = true; ///< No step is under way.
  std::map<uint64_t, open_exchange> open_;
  std::vector<rank_arrival> arrivals_; ///< That were not reported yet.
  uint64_t numbers_ = 0;
  pending* loading_ = nullptr;                       ///< Waits for parts from elsewhere.
  std::map<kept_part, block_pointer> parts_awaited_; ///< And the memory for them.
  std::shared_ptr<shared_memory_movers> movers_;     ///< Of its process, if it helps them.
  pending* paused_ = nullptr;                 ///< It is done; the mailbox is handled before the program continues.
  caf::actor_clock::time_point resumed_at_{}; ///< When the mailbox was handled last.
  std::vector<event> events_;
};

rank_actor::behavior_type training_rank(rank_actor::stateful_pointer<training_rank_state> self, rank_settings settings);

} // namespace ringmaster::training
