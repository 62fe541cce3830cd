#include "tools/demo/demo_data.hpp"

#include "runtime/samples/sample_hash.hpp"

#include <algorithm>

namespace ringmaster {

std::vector<double> demo_input(gpu_sim::ReduceOp op, uint64_t count, uint64_t seed, uint32_t rank) {
  const auto start = sample_seed(rank, seed);
  std::vector<double> result(count);
  for (uint64_t i = 0; i < count; ++i) {
    const auto bits = sample_hash(start, i);
    if (op == gpu_sim::PROD)
      result[i] = (bits & 1 ? 1.0 : -1.0) * (bits & 2 ? 0.5 : 2.0);
    else
      result[i] = static_cast<double>(sample_whole_number(bits, 1 << 20)) / 1024.0;
  }
  return result;
}

std::vector<double> serial_all_reduce(gpu_sim::ReduceOp op, const std::vector<const std::vector<double>*>& inputs) {
  auto result = *inputs.front();
  for (size_t rank = 1; rank < inputs.size(); ++rank)
    for (size_t i = 0; i < result.size(); ++i) {
      auto x = (*inputs[rank])[i];
      switch (op) {
        case gpu_sim::PROD: result[i] *= x; break;
        case gpu_sim::MIN: result[i] = std::min(result[i], x); break;
        case gpu_sim::MAX: result[i] = std::max(result[i], x); break;
        default: result[i] += x; break;
      }
    }
  if (op == gpu_sim::AVG)
    for (auto& x : result)
      x /= static_cast<double>(inputs.size());
  return result;
}

} // namespace ringmaster
