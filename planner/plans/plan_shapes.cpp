#include "planner/plans/plan_shapes.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>

namespace ringmaster::training {

namespace {

constexpr uint32_t context_max = 64, block_min = 256; ///< Ranks; positions of a block of keys.

/// The largest degree to try: the largest useful one, unless the filter names more.
uint32_t most_of(const number_range& filter, uint32_t of_use) {
  return filter.most == UINT32_MAX ? std::max(filter.least, of_use) : filter.most;
}

/// Whether `ranks` tensor-parallel ranks have equal shares of each layer.
bool divides_layers(const language_model& m, uint32_t ranks) {
  const bool heads = m.heads % ranks == 0 && (m.key_value_heads % ranks == 0 || ranks % m.key_value_heads == 0);
  const bool linear = m.linear.key_heads % ranks == 0 && m.linear.value_heads % ranks == 0;
  return heads && linear && (!m.has_dense_layers() || m.width % ranks == 0) && m.experts.shared_width % ranks == 0;
}

} // namespace

std::vector<uint32_t> divisors_of(uint32_t x) {
  ensure(x > 0, "only positive numbers have divisors");
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
  const auto most = most_of(filter.tp, of_use);
  auto result = divisors_of(asked.devices);
  std::erase_if(result,
                [&](auto t) { return t > most || !divides_layers(asked.trained, t) || !filter.tp.contains(t); });
  return result;
}

std::vector<uint32_t> context_degrees_of(const plan_question& asked) {
  auto& filter = asked.filter;
  const auto sequence = asked.trained.sequence;
  const auto most = most_of(filter.cp, context_max);
  const bool is_named = filter.cp.least > 1 || filter.cp.most < UINT32_MAX;
  const auto least = is_named ? 1 : block_min;
  auto result = divisors_of(asked.devices);
  std::erase_if(result, [&](auto c) {
    const bool cut_finely = c > 1 && (sequence % (2 * c) != 0 || sequence / (2 * c) < least);
    return c > most || cut_finely || !filter.cp.contains(c);
  });
  return result;
}

std::vector<uint32_t> data_degrees_of(const plan_question& asked) {
  auto result = divisors_of(asked.devices);
  std::erase_if(result, [&](auto d) { return asked.global_batch % d != 0 || !asked.filter.dp.contains(d); });
  return result;
}

std::vector<uint32_t> pipeline_degrees_of(const plan_question& asked) {
  auto result = divisors_of(asked.devices);
  std::erase_if(result, [&](auto p) {
    training_setting how;
    how.pp = p;
    return p > asked.trained.layers || !all_stages_have_layers(how, asked.trained.layers)
           || !asked.filter.pp.contains(p);
  });
  return result;
}

bool all_stages_have_layers(const training_setting& how, uint32_t layers) {
  ensure(layers > 0, "a model has layers");
  const auto places = how.pp * how.chunks_of_stage(), each = how.chunk_layers(layers);
  ensure(uint64_t{places} * each >= layers, "all layers have a place");
  return (places - 1) * each < layers + (places * each == layers ? 0 : 2);
}

std::vector<training_setting> shapes_of(const plan_question& asked) {
  auto& m = asked.trained;
  auto& filter = asked.filter;
  const auto contexts = context_degrees_of(asked);
  std::vector<training_setting> result;
  for (auto t : tensor_degrees_of(asked)) {
    for (auto c : contexts) {
      if (asked.devices / t % c != 0)
        continue;
      for (auto p : divisors_of(asked.devices / t / c)) {
        const auto d = asked.devices / t / c / p;
        if (p > m.layers || asked.global_batch % d != 0 || !filter.pp.contains(p) || !filter.dp.contains(d))
          continue;
        for (auto e : divisors_of(std::max(1u, m.experts.count))) {
          if (t * c * d % e != 0 || !filter.ep.contains(e))
            continue;
          training_setting how;
          how.set_degrees(t, d, p);
          how.cp = c;
          how.ep = e;
          how.global_batch = asked.global_batch;
          how.computed_in = filter.computed_in;
          how.attention = filter.attention;
          how.counted = filter.counted;
          how.gradient_bytes = filter.gradient_bytes;
          how.state_bytes = filter.state_bytes;
          how.offloads_states = filter.offloads_states;
          how.offloads_activations = filter.offloads_activations;
          ensure(how.devices() == asked.devices, "the degrees of a plan make all devices");
          result.push_back(how);
        }
      }
    }
  }
  return result;
}

} // namespace ringmaster::training
