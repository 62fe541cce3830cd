#include "runtime/training/transformer/plans/plan_shapes.hpp"

#include <algorithm>

namespace ringmaster::training {

namespace {

constexpr uint32_t context_max = 64, block_min = 256; ///< Ranks; positions of a block of keys.

/// How many may be tried: as many as are of use, unless somebody names more.
uint32_t most_of(const number_range& told, uint32_t of_use) {
  return told.most == UINT32_MAX ? std::max(told.least, of_use) : told.most;
}

/// Whether so many tensor-parallel ranks have the same of each layer.
bool divides_layers(const language_model& m, uint32_t ranks) {
  const bool heads = m.heads % ranks == 0 && (m.key_value_heads % ranks == 0 || ranks % m.key_value_heads == 0);
  const bool linear = m.linear.key_heads % ranks == 0 && m.linear.value_heads % ranks == 0;
  return heads && linear && (!m.has_dense_layers() || m.width % ranks == 0) && m.experts.shared_width % ranks == 0;
}

} // namespace

std::vector<uint32_t> divisors_of(uint32_t x) {
  std::vector<uint32_t> small, large;
  for (uint32_t i = 1; i <= x / i; ++i)
    if (x % i == 0) {
      small.push_back(i);
      if (i != x / i)
        large.push_back(x / i);
    }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

std::vector<parallel_setting> shapes_of(const plan_question& asked) {
  auto& m = asked.trained;
  auto& filter = asked.filter;
  const auto tensor_of_use = static_cast<uint32_t>(std::max(8.0, std::min(16.0, asked.system.devices_per_host * 2)));
  const auto tensor_most = most_of(filter.tensor, tensor_of_use), context_most = most_of(filter.context, context_max);
  std::vector<parallel_setting> result;
  for (auto t : divisors_of(asked.devices)) {
    if (t > tensor_most || !divides_layers(m, t) || !filter.tensor.contains(t))
      continue;
    for (auto c : divisors_of(asked.devices / t)) {
      const bool is_named = filter.context.least > 1 || filter.context.most < UINT32_MAX;
      const auto least = is_named ? 1 : block_min;
      const bool cut_finely = c > 1 && (m.sequence % (2 * c) != 0 || m.sequence / (2 * c) < least);
      if (c > context_most || cut_finely || !filter.context.contains(c))
        continue;
      for (auto p : divisors_of(asked.devices / t / c)) {
        const auto d = asked.devices / t / c / p;
        if (p > m.layers || asked.global_batch % d != 0 || !filter.pipeline.contains(p) || !filter.data.contains(d))
          continue;
        for (auto e : divisors_of(std::max(1u, m.experts.count))) {
          if (t * c * d % e != 0 || !filter.expert.contains(e))
            continue;
          parallel_setting how;
          how.shape = {t, d, p};
          how.context = c;
          how.expert = e;
          how.global_batch = asked.global_batch;
          how.computed_in = filter.computed_in;
          how.attention = filter.attention;
          how.counted = filter.counted;
          how.gradient_bytes = filter.gradient_bytes;
          how.state_bytes = filter.state_bytes;
          how.offloads_states = filter.offloads_states;
          how.offloads_activations = filter.offloads_activations;
          result.push_back(how);
        }
      }
    }
  }
  return result;
}

} // namespace ringmaster::training
