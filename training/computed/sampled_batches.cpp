#include "training/computed/sampled_batches.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <stdexcept>

namespace ringmaster::training {

caf::error sampled_batches::fill(uint64_t step, range samples, std::span<float> inputs,
                                 std::span<uint32_t> labels) const {
  std::vector<uint32_t> wanted;
  {
    std::scoped_lock lock{guard_};
    ensure(samples.begin <= samples.end, "a range of samples ends after its begin");
    auto batch = order_.batch(order_.place_of(step)).subspan(samples.begin, samples.count());
    wanted.assign(batch.begin(), batch.end());
  }
  return from_->fill(wanted, inputs, labels);
}

remembered_data::remembered_data(std::shared_ptr<const data_set> of)
  : of_(std::move(of)), count_(static_cast<uint32_t>(std::min<uint64_t>(
                          of_->count(), bytes_max / (of_->shape().elements() * sizeof(float) + sizeof(remembered))))),
    all_(std::make_unique<remembered[]>(count_)) {}

void remembered_data::fill_one(uint32_t sample, std::span<float> input, std::span<uint32_t> labels) const {
  if (sample >= count_) {
    if (auto problem = of_->fill({&sample, 1}, input, labels))
      throw std::runtime_error{render(problem)};
    return;
  }
  ensure(input.size() <= shape().elements(), "an input is not larger than a sample");
  auto& its = all_[sample];
  std::call_once(its.made, [&] {
    its.input.resize(shape().elements());
    its.labels.resize(labels_each());
    if (auto problem = of_->fill({&sample, 1}, its.input, its.labels))
      throw std::runtime_error{render(problem)};
  });
  std::copy_n(its.input.begin(), input.size(), input.begin());
  std::copy_n(its.labels.begin(), labels.size(), labels.begin());
}

} // namespace ringmaster::training
