#include "training/computed/sampled_batches.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
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

namespace {

constexpr uint32_t samples_at_once = 64; ///< About ten milliseconds for most models.

} // namespace

std::vector<uint32_t> tried_samples(uint32_t count, uint32_t samples_max) {
  constexpr double golden_ratio = 0.6180339887498949;
  auto step = static_cast<uint64_t>(count * golden_ratio);
  while (std::gcd(step, uint64_t{count}) > 1)
    ++step;
  std::vector<uint32_t> result(std::min(count, samples_max));
  for (uint64_t i = 0; i < result.size(); ++i)
    result[i] = static_cast<uint32_t>(i * step % count);
  return result;
}

caf::expected<loss_sums> evaluate(const training_job& job, std::span<const std::span<const std::byte>> weights,
                                  const data_set& on, uint32_t samples_max,
                                  const std::function<bool(uint32_t)>& continues) {
  ensure(weights.size() == job.layers.size(), "each layer has its weights");
  loss_sums result;
  const auto tried = tried_samples(on.count(), samples_max);
  const auto count = static_cast<uint32_t>(tried.size());
  for (uint32_t begin = 0; begin < count; begin += samples_at_once) {
    if (begin > 0 && continues && !continues(begin))
      break;
    const auto samples = std::min(samples_at_once, count - begin);
    std::vector<uint32_t> labels(samples * on.labels_each());
    std::vector<float> inputs(samples * on.shape().elements());
    RETURN_ERROR(on.fill(std::span{tried}.subspan(begin, samples), inputs, labels));
    std::vector<std::byte> x(inputs.size() * bytes_of(job.as)), y;
    set_numbers(job.as, inputs, x.data());
    for (size_t l = 0; l < job.layers.size(); ++l) {
      y.resize(samples * job.layers[l]->outputs() * bytes_of(job.as));
      const pass at{.as = job.as, .samples = samples, .global_batch = samples, .trains = false};
      job.layers[l]->forward(at, x.data(), weights[l].data(), y.data());
      std::swap(x, y);
    }
    result.add(softmax_loss(job.as, job.classes(), x.data(), labels, samples, nullptr));
  }
  return result;
}

} // namespace ringmaster::training
