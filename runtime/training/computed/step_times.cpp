#include "runtime/training/computed/step_times.hpp"

#include <algorithm>

namespace ringmaster::training {

double median_of(std::vector<double> values) {
  if (values.empty())
    return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double median_around(std::span<const double> seconds, size_t step) {
  constexpr size_t reach = 10;
  const auto begin = step - std::min(step, reach), end = std::min(step + reach + 1, seconds.size());
  const auto around = seconds.subspan(begin, end - begin);
  return median_of({around.begin(), around.end()});
}

} // namespace ringmaster::training
