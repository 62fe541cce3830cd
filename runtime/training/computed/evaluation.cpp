#include "runtime/training/computed/evaluation.hpp"

#include "messages/errc.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>

namespace ringmaster::training {

namespace {

constexpr uint32_t samples_at_once = 64; ///< Some ten milliseconds of most models.

} // namespace

loss_sums evaluate(const training_job& job, std::span<const std::span<const std::byte>> weights, const data_set& on,
                   uint32_t samples_max, const std::function<bool(uint32_t)>& goes_on) {
  loss_sums result;
  const auto count = std::min(on.count(), samples_max);
  for (uint32_t begin = 0; begin < count; begin += samples_at_once) {
    if (begin > 0 && goes_on && !goes_on(begin))
      break;
    const auto samples = std::min(samples_at_once, count - begin);
    std::vector<uint32_t> numbers(samples), labels(samples * on.labels_each());
    std::iota(numbers.begin(), numbers.end(), begin);
    std::vector<float> inputs(samples * on.shape().elements());
    if (auto problem = on.fill(numbers, inputs, labels))
      throw std::logic_error{render(problem)};
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
