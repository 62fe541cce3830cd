#include "planner/plans/plan_shapes.hpp"

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

std::vector<uint32_t> tensor_degrees_of(const plan_question& asked) {
  auto& filter = asked.filter;
  const auto of_use = static_cast<uint32_t>(std::max(8.0, std::min(16.0, asked.system.devices_per_host * 2)));
  const auto most = most_of(filter.tensor, of_use);
  auto result = divisors_of(asked.devices);
  std::erase_if(result,
                [&](auto t) { return t > most || !divides_layers(asked.trained, t) || !filter.tensor.contains(t); });
  return result;
}

std::vector<uint32_t> context_degrees_of(const plan_question& asked) {
  auto& filter = asked.filter;
  const auto sequence = asked.trained.sequence;
  const auto most = most_of(filter.context, context_max);
  const bool is_named = filter.context.least > 1 || filter.context.most < UINT32_MAX;
  const auto least = is_named ? 1 : block_min;
  auto result = divisors_of(asked.devices);
  std::erase_if(result, [&](auto c) {
    const bool cut_finely = c > 1 && (sequence % (2 * c) != 0 || sequence / (2 * c) < least);
    return c > most || cut_finely || !filter.context.contains(c);
  });
  return result;
}

std::vector<uint32_t> data_degrees_of(const plan_question& asked) {
  auto result = divisors_of(asked.devices);
  std::erase_if(result, [&](auto d) { return asked.global_batch % d != 0 || !asked.filter.data.contains(d); });
  return result;
}

std::vector<uint32_t> pipeline_degrees_of(const plan_question& asked) {
  auto result = divisors_of(asked.devices);
  std::erase_if(result, [&](auto p) {
    parallel_setting how;
    how.shape.pipeline = p;
    return p > asked.trained.layers || !all_stages_have_layers(how, asked.trained.layers)
           || !asked.filter.pipeline.contains(p);
  });
  return result;
}

bool all_stages_have_layers(const parallel_setting& how, uint32_t layers) {
  const auto places = how.shape.pipeline * how.chunks_of_stage(), each = how.chunk_layers(layers);
  return (places - 1) * each < layers + (places * each == layers ? 0 : 2);
}

std::vector<parallel_setting> shapes_of(const plan_question& asked) {
  auto& m = asked.trained;
  auto& filter = asked.filter;
  const auto contexts = context_degrees_of(asked);
  std::vector<parallel_setting> result;
  for (auto t : tensor_degrees_of(asked)) {
    for (auto c : contexts) {
      if (asked.devices / t % c != 0)
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
