#pragma once

#include <caf/expected.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ringmaster::training {

/// What becomes of an epoch's last batch where there are too few samples for a whole one.
enum class short_batch : uint8_t { dropped, used };

struct sampler_options {
  uint32_t samples = 0;
  uint32_t global_batch = 1; ///< Samples of a step, of all ranks together.
  uint64_t seed = 1234;
  short_batch last = short_batch::dropped;
};

/// Which samples a step takes. That follows from the options, the epoch and the step alone: who begins again in the
/// middle goes on with the same samples, whatever the number of ranks. An epoch has each sample once at most, in the
/// order that CPython's random.Random(seed + (epoch << 64)).shuffle gives; epoch 0 is `ringmaster partition`'s.
class sampler {
public:
  struct place {
    uint64_t epoch = 0;
    uint64_t step = 0; ///< Of the epoch.
    friend bool operator==(const place&, const place&) = default;
  };

  /// Errors: invalid_argument for no sample, a batch of 0, and one that is never filled where short ones are dropped.
  static caf::expected<sampler> of(const sampler_options& opts);

  uint64_t steps_an_epoch() const;
  /// The position after this number of steps.
  place place_of(uint64_t steps) const { return {steps / steps_an_epoch(), steps % steps_an_epoch()}; }
  /// The samples of the step, below `steps_an_epoch()`; good until the next call. The first of an epoch shuffles.
  std::span<const uint32_t> batch(place where);
  /// A sentence about the last batch; empty if all batches are whole.
  std::string remark() const;

private:
  explicit sampler(const sampler_options& opts) : opts_(opts) {}

  sampler_options opts_;
  std::optional<uint64_t> epoch_; ///< Whose order it is.
  std::vector<uint32_t> order_;
};

/// What a rank has of a step's batch: pieces one behind the other, of which none is larger by more than one sample, so
/// that together they are the batch. A batch of fewer samples than ranks leaves the last of these without.
std::span<const uint32_t> part_of_batch(std::span<const uint32_t> batch, uint32_t ranks, uint32_t rank);

} // namespace ringmaster::training
