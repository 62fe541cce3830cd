// Interleaved 1F1B (Narayanan et al., Megatron-LM, 2021): each rank has v stages of the model, r, r+p, r+2p, ...,
// and runs p micro-batches of one stage, then p of the next. The number of micro-batches must be a multiple of p.
// The bubble is (p-1)/(v m) of the ideal time, 1/v of 1F1B's, for v times the hops; rank 0 holds the activations of
// about p (1 + (p-1)/(pv)) micro-batches. Where `3d` has layers of experts a forward and a backward are one block, one
// forward more is ahead, and what goes to experts is beside the other one's work.
#include "training/strategies/pipelines/pipeline.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::training {

namespace {

using kind = pipeline_step::kind;

strategy run_interleaved(rank& self, const model& m) {
  const auto shape = pipeline_mesh(m, self.world_size());
  const auto p = shape.pipeline, v = m.parallel.chunks, r = shape.stage(self.index());
  const auto count = pipeline_micro_batches(m, shape), total = count * v;
  // A block is of a forward and a backward that does not need it: one more is ahead.
  const uint32_t blocks = m.parallel.ep > 1 && m.blocks ? 1 : 0;
  const auto ahead = count == p ? total : std::min(2 * (p - 1 - r) + (v - 1) * p + blocks, total);
  auto step = [=](uint32_t i) {
    auto next = one_forward_one_backward_step(i, ahead, total);
    const auto k = next.micro_batch, chunk = k % (p * v) / p;
    const bool there = next.what == kind::forward;
    return pipeline_step{next.what, k / (p * v) * p + k % p, there ? chunk : v - 1 - chunk,
                         blocks > 0 && there && i >= ahead};
  };
  return run_pipeline(self, m, {shape, {2 * total, step}, v});
}

caf::error check_interleaved(const model& m, uint32_t world_size) {
  auto refused = [](std::string why) { return invalid("interleaved: " + std::move(why)); };
  RETURN_ERROR(check_mesh(m, world_size));
  const auto shape = pipeline_mesh(m, world_size);
  const auto p = shape.pipeline;
  if (p < 2)
    return refused("one stage has no next stage; use 2 or more");
  if (m.parallel.chunks < 2)
    return refused("it needs 2 chunks or more; with one it is 1f1b");
  if (m.layers < uint64_t{p} * m.parallel.chunks)
    return refused(fmt::format("{} ranks of {} chunks need at least {} layers, not {}", p, m.parallel.chunks,
                               uint64_t{p} * m.parallel.chunks, m.layers));
  RETURN_ERROR(check_pipeline_of(m, shape, p));
  if (auto count = pipeline_micro_batches(m, shape); count % p != 0)
    return refused(fmt::format("{} micro-batches are no multiple of {} ranks; {} are", count, p, (count / p + 1) * p));
  return caf::none;
}

} // namespace

const known_strategy interleaved{.name = "interleaved",
                                 .what = "interleaved 1F1B: several stages a rank (--chunks)",
                                 .run = run_interleaved,
                                 .check = check_interleaved,
                                 .shape = pipeline_mesh,
                                 .shares = sharing::stages,
                                 .chunks = chunk_use::parts,
                                 .held = [](const model& m, const mesh& shape, uint64_t) -> uint64_t {
                                   return ((m.parallel.chunks + 1) * shape.pipeline - 1) / m.parallel.chunks;
                                 },
                                 .stand_in = &one_forward_one_backward};

} // namespace ringmaster::training
