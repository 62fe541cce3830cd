#include "training/layers/softmax_loss.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace ringmaster::training {

namespace {

template <class T>
loss_sums loss_as(uint64_t classes, const T* outputs, std::span<const uint32_t> labels, uint64_t of_all, T* by_output) {
  loss_sums result;
  std::vector<T> powers(classes);
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto* y = outputs + i * classes;
    const auto largest = std::max_element(y, y + classes);
    double sum = 0;
    for (uint64_t j = 0; j < classes; ++j)
      sum += powers[j] = std::exp(y[j] - *largest);
    result.loss += std::log(sum) - static_cast<double>(y[labels[i]] - *largest);
    result.right += static_cast<uint64_t>(largest - y) == labels[i] ? 1 : 0;
    if (by_output == nullptr)
      continue;
    const auto scale = static_cast<T>(1 / (sum * static_cast<double>(of_all)));
    auto* by = by_output + i * classes;
    for (uint64_t j = 0; j < classes; ++j)
      by[j] = scale * powers[j];
    by[labels[i]] -= static_cast<T>(1 / static_cast<double>(of_all));
  }
  result.samples = labels.size();
  return result;
}

} // namespace

loss_sums softmax_loss(precision as, uint64_t classes, const std::byte* outputs, std::span<const uint32_t> labels,
                       uint64_t of_all, std::byte* by_output) {
  if (as == precision::float32)
    return loss_as(classes, reinterpret_cast<const float*>(outputs), labels, of_all,
                   reinterpret_cast<float*>(by_output));
  return loss_as(classes, reinterpret_cast<const double*>(outputs), labels, of_all,
                 reinterpret_cast<double*>(by_output));
}

} // namespace ringmaster::training
