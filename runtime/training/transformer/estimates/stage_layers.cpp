#include "runtime/training/transformer/estimates/stage_layers.hpp"

#include <algorithm>

namespace ringmaster::training {

namespace {

/// Of [begin, end), what lies in [from, to).
uint32_t overlap(uint32_t begin, uint32_t end, uint32_t from, uint32_t to) {
  const auto first = std::max(begin, from), last = std::min(end, to);
  return last > first ? last - first : 0;
}

/// Of these, the layers with a window: every other one from the model's first, which is at place `zero`, on.
uint32_t windowed(uint32_t begin, uint32_t end, uint32_t from, uint32_t to, uint32_t zero) {
  const auto first = std::max(begin, from) - zero, count = overlap(begin, end, from, to);
  return (first + count + 1) / 2 - (first + 1) / 2;
}

} // namespace

stage_layers stage_layers_of(const language_model& m, const parallel_setting& how, uint32_t index) {
  const auto p = how.shape.pipeline, each = how.chunk_layers(m.layers), chunks = how.chunks_of_stage();
  const uint32_t apart = each * p * chunks == m.layers ? 0 : 1;
  const auto first_sparse = apart + (m.experts.count > 0 ? std::min(m.layers, m.experts.dense_first) : m.layers);
  stage_layers x;
  auto add = [&](uint32_t piece, double part) {
    const auto begin = piece * each, end = begin + each;
    x.dense += part * overlap(begin, end, apart, first_sparse);
    x.experts += part * overlap(begin, end, first_sparse, apart + m.layers);
    if (m.is_windowed(0)) {
      x.windowed_dense += part * windowed(begin, end, apart, first_sparse, apart);
      x.windowed_experts += part * windowed(begin, end, first_sparse, apart + m.layers, apart);
    }
  };
  if (how.schedule == pipeline_schedule::dualpipe) { // both copies of a rank's layers, the mean
    add(index, 0.5);
    add(p - 1 - index, 0.5);
  } else {
    for (uint32_t chunk = 0; chunk < chunks; ++chunk)
      add(how.schedule == pipeline_schedule::zb_v && chunk == 1 ? 2 * p - 1 - index : chunk * p + index, 1);
  }
  const auto last_place = apart == 0 ? m.layers - 1 : m.layers + 1;
  x.apart = apart > 0;
  x.embedding = index == 0;
  x.logits = how.turns_around() ? index == 0 : last_place / each % p == index;
  return x;
}

stage_layers all_layers_of(const language_model& m) {
  return stage_layers_of(m, {}, 0);
}

stage_span stages_that_count(const language_model& m, const parallel_setting& how) {
  const auto p = how.shape.pipeline;
  if (p <= 3)
    return {{0, 1, 2}, p};
  stage_span x{{0, 1}, 2};
  if (m.is_windowed(0))
    x.indices[x.count++] = 2;
  const auto each = how.chunk_layers(m.layers);
  const auto sparse_from = m.experts.count == 0 ? 0 : m.experts.dense_first / each + 1;
  if (sparse_from >= x.count && sparse_from < p - 1)
    x.indices[x.count++] = sparse_from;
  const auto last_full = how.chunks_of_stage() > 1 || each * p == m.layers ? 0 : (m.layers + 1) / each - 1;
  if (last_full > x.indices[x.count - 1] && last_full < p - 1)
    x.indices[x.count++] = last_full;
  x.indices[x.count++] = p - 1;
  return x;
}

} // namespace ringmaster::training
