#pragma once

#include "training/computed/exchange_desk.hpp"
#include "training/computed/rank_computation.hpp"

#include <deque>

namespace ringmaster::training {

/// Training with real numbers in one thread and in the memory of this process: the meaning of a strategy's program,
/// without devices, messages or time. Sums are added in the order of ranks, so the same program gives the same bits.
/// Runs on devices are compared with it.
class computed_world final : public executor {
public:
  /// `bytes`: each rank's memory. The job outlives it.
  computed_world(const training_job& job, uint32_t world_size, uint64_t bytes);

  /// One training step of all ranks, after the latest one that succeeded. Returns the losses of all samples. Errors:
  /// those of the strategy's check and of operations; a deadlock, with the ranks that wait for each other.
  caf::expected<loss_sums> run_step();

  uint64_t step() const { return step_; }
  /// Of the rank that has used the most at any one time.
  uint64_t bytes_peak() const;
  /// A layer's parameter, assembled from the shards of all ranks, as doubles.
  std::vector<double> parameter_of(uint32_t layer, uint32_t parameter) const;

  bool begin(pending& x) override;
  bool await(pending& x) override;
  void fail(uint32_t rank, caf::error why) override;
  bool failed() const override { return static_cast<bool>(error_); }
  void release(uint32_t rank, uint64_t memory) noexcept override { ranks_[rank]->store.release(memory); }

private:
  struct member {
    member(const training_job& job, uint64_t bytes) : memory(bytes), store(memory, 1 << 16), computation(job, store) {}

    std::vector<std::byte> memory;
    value_store store;
    rank_computation computation;
  };
  struct open_transfer {
    pending* of;
    rank_computation::transfer data;
  };

  /// Whether the operation has finished.
  bool exchange(pending& x);
  caf::error take_place(exchange_desk::exchange& all, const pending* now);
  void end(const arrival& x, const value_tag& result, block_pointer data, const pending* now);

  const training_job& job_;
  std::vector<std::unique_ptr<member>> ranks_;
  uint64_t step_ = 0;
  exchange_desk desk_;
  std::map<uint64_t, open_transfer> open_;
  uint64_t numbers_ = 0;
  std::deque<std::coroutine_handle<>> ready_;
  caf::error error_;
};

} // namespace ringmaster::training
