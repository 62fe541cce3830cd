#pragma once

#include "training/computed/training_job.hpp"
#include "training/data/data_set.hpp"
#include "training/data/sampler.hpp"
#include "training/layers/softmax_loss.hpp"

#include <caf/expected.hpp>

#include <functional>
#include <mutex>
#include <vector>

namespace ringmaster::training {

/// A data set's samples in the order of a sampler, step after step.
class sampled_batches final : public batch_source {
public:
  sampled_batches(std::shared_ptr<const data_set> from, sampler order)
    : from_(std::move(from)), order_(std::move(order)) {}

  caf::error fill(uint64_t step, range samples, std::span<float> inputs, std::span<uint32_t> labels) const override;

private:
  std::shared_ptr<const data_set> from_;
  mutable std::mutex guard_; ///< Of the order, which is computed an epoch at a time.
  mutable sampler order_;
};

/// A cache of another data set whose samples are expensive. The first samples, up to 256 MiB at 4 bytes an element, are
/// made once each; all others each time.
class remembered_data final : public data_set {
public:
  explicit remembered_data(std::shared_ptr<const data_set> of);

  std::string name() const override { return of_->name(); }
  uint32_t count() const override { return of_->count(); }
  sample_shape shape() const override { return of_->shape(); }
  uint32_t label_count() const override { return of_->label_count(); }
  uint32_t labels_each() const override { return of_->labels_each(); }
  uint64_t digest() const override { return of_->digest(); }

private:
  void fill_one(uint32_t sample, std::span<float> input, std::span<uint32_t> labels) const override;

  struct remembered {
    std::once_flag made;
    std::vector<float> input;
    std::vector<uint32_t> labels;
  };
  static constexpr uint64_t bytes_max = UINT64_C(256) << 20;

  std::shared_ptr<const data_set> of_;
  uint32_t count_; ///< Of samples in the cache.
  std::unique_ptr<remembered[]> all_;
};

/// The samples, of `count`, that a model is evaluated on, in order, and at most `samples_max`. Any number of the first
/// ones is spread over the whole set, because neighbours are often similar (Weyl's sequence of the golden ratio, each
/// sample once).
std::vector<uint32_t> tried_samples(uint32_t count, uint32_t samples_max);

/// The losses of a model on `tried_samples` of a data set. `weights`: each layer's, whole; they do not change.
/// `continues` is called now and then with the number of samples so far; false stops the evaluation there. Errors:
/// those of `data_set::fill`.
caf::expected<loss_sums> evaluate(const training_job& job, std::span<const std::span<const std::byte>> weights,
                                  const data_set& on, uint32_t samples_max = UINT32_MAX,
                                  const std::function<bool(uint32_t)>& continues = {});

} // namespace ringmaster::training
