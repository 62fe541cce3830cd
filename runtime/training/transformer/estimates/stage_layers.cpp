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

/// The model's layers in places: the embedding may have one of its own before them.
struct placed_layers {
  const language_model& m;
  uint32_t each;         ///< Places of a piece.
  uint32_t apart;        ///< The first layer's place.
  uint32_t first_sparse; ///< That of the first one with experts.

  placed_layers(const language_model& of, const parallel_setting& how)
    : m(of), each(how.chunk_layers(of.layers)),
      apart(each * how.shape.pipeline * how.chunks_of_stage() == of.layers ? 0 : 1),
      first_sparse(apart + (of.experts.count > 0 ? std::min(of.layers, of.experts.dense_first) : of.layers)) {}

  uint32_t last_place() const { return apart == 0 ? m.layers - 1 : m.layers + 1; }

  void add_to(stage_layers& x, uint32_t piece, double part) const {
    const auto begin = piece * each, end = begin + each;
    x.dense += part * overlap(begin, end, apart, first_sparse);
    x.experts += part * overlap(begin, end, first_sparse, apart + m.layers);
    if (m.is_windowed(0)) {
      x.windowed_dense += part * windowed(begin, end, apart, first_sparse, apart);
      x.windowed_experts += part * windowed(begin, end, first_sparse, apart + m.layers, apart);
    }
  }
};

} // namespace

stage_layers chunk_layers_of(const language_model& m, const parallel_setting& how, uint32_t index, uint32_t chunk) {
  const placed_layers all{m, how};
  const auto piece = chunk * how.shape.pipeline + index;
  stage_layers x;
  all.add_to(x, piece, 1);
  x.apart = all.apart > 0;
  x.embedding = piece == 0;
  x.logits = all.last_place() / all.each == piece;
  return x;
}

stage_layers stage_layers_of(const language_model& m, const parallel_setting& how, uint32_t index) {
  const placed_layers all{m, how};
  const auto p = how.shape.pipeline;
  stage_layers x;
  const auto add = [&](uint32_t piece, double part) { all.add_to(x, piece, part); };
  if (how.schedule == pipeline_schedule::dualpipe) { // both copies of a rank's layers, the mean
    add(index, 0.5);
    add(p - 1 - index, 0.5);
  } else {
    for (uint32_t chunk = 0; chunk < how.chunks_of_stage(); ++chunk)
      add(how.schedule == pipeline_schedule::zb_v && chunk == 1 ? 2 * p - 1 - index : chunk * p + index, 1);
  }
  x.apart = all.apart > 0;
  x.embedding = index == 0;
  x.logits = how.turns_around() ? index == 0 : all.last_place() / all.each % p == index;
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
