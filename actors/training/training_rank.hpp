#pragma once

#include "actors/movers/shared_memory_movers.hpp"
#include "actors/training/interfaces.hpp"
#include "runtime/memory/mapped_memory.hpp"
#include "training/computed/rank_computation.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

namespace ringmaster::training {

/// Of a node, to start a device again in place of one that a rank has lost; longer, and the rank is over.
constexpr caf::timespan rejoin_limit = std::chrono::seconds{10};

/// Of the steady clock, which processes do not share.
double seconds_now();

struct rank_settings {
  std::shared_ptr<const training_job> job;
  coordinator_actor coordinator;
  trainer_actor trainer;
  device_id device;
  uint32_t place = 0;            ///< Where it stands among all ranks when all are there.
  uint64_t memory_bytes = 0;     ///< Of the device, for values; 0: all of it.
  std::vector<std::string> told; ///< As trainer_settings has it.
  bool helps = false;            ///< It has a thread of its own, which runs what it has woken while it waits.
  caf::timespan request_limit = std::chrono::seconds{10};
};

/// The state of a RANK: the executor of its strategy's program. What needs no other rank is computed at once, in the
/// actor's thread; for the rest it shows the trainer what it has, and goes on when the answer comes.
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
  /// Behind a look at the mailbox.
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
  /// For an answer, before it sleeps: of ranks that have as much to do the others come soon, and to wake a thread on
  /// another core takes 23 to 80 us twice (two-phase waiting: Karlin, Li, Manasse and Owicki, Empirical studies of
  /// competitive spinning, 1991). It gives way to whoever has no processor meanwhile.
  static constexpr std::chrono::microseconds looks_for{500};

  struct open_exchange {
    pending* of; ///< Null: nobody waits for it.
    rank_computation::transfer data;
    double begun = 0;
    uint64_t held = 0; ///< Bytes, then.
  };

  void found(const device_handle& x);
  /// Its memory file may be gone because the device is, which nobody may have heard of yet.
  void not_reached(const device_actor& device, const caf::error& why);
  /// `all`: bytes of the device, where the settings name none.
  void allocate(uint64_t all);
  void allocated(const gpu_sim::MemAddr& at, uint64_t bytes);
  void ready(const caf::error& problem);
  void down(const caf::down_msg& x);
  /// Answers the request to leave, if there is one, and ends.
  void left();
  /// Ends: those that it watches live on, and would keep its memory for as long.
  void quit();
  bool exchange(pending& x);
  /// What the operation loads is to come from elsewhere.
  void load(pending& x, const std::vector<kept_part>& missing);
  /// Of communications that were begun with nothing between them: as one message.
  void tell_arrivals();
  /// What has come of the program so far.
  void tell();
  /// The same, and runs those who hear of it, up to the answer, if there is one by then; then looks for it for a while,
  /// and as long as the process's communicators have slices that it can move.
  void tell_and_help();
  void end(pending& x);
  void fail(const pending& x, const caf::error& why);
  /// Goes on with the program at that place, and whatever is ready behind it.
  void run(std::coroutine_handle<> next);
  void stop();
  void note(const pending& x, double begun, double ended, uint64_t held);

  rank_settings settings_;
  caf::actor_addr device_;
  bool coordinator_gone_ = false;
  std::function<void()> leaving_; ///< Set while the coordinator is to free the memory.
  std::shared_ptr<mapped_memory> memory_;
  std::optional<value_store> store_;
  std::optional<rank_computation> computation_;
  step_order order_;
  model shape_; ///< As the step has it.
  std::optional<rank> rank_;
  strategy program_;
  bool stopped_ = true; ///< Nothing of the step goes on.
  std::map<uint64_t, open_exchange> open_;
  std::vector<rank_arrival> arrivals_; ///< That the trainer has not been told of.
  uint64_t numbers_ = 0;
  pending* loading_ = nullptr;                       ///< Waits for parts from elsewhere.
  std::map<kept_part, block_pointer> parts_awaited_; ///< And where they are to lie.
  std::shared_ptr<shared_memory_movers> movers_;     ///< Of its process, if it helps them.
  pending* paused_ = nullptr;                        ///< Is done, but there was no look at the mailbox for a while.
  caf::actor_clock::time_point looked_at_{};         ///< At the mailbox.
  std::vector<event> events_;
};

rank_actor::behavior_type training_rank(rank_actor::stateful_pointer<training_rank_state> self, rank_settings settings);

} // namespace ringmaster::training
