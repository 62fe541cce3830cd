#include "training/data/sampler.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/schedule/collective.hpp"
#include "runtime/text/quantity_text.hpp"
#include "training/data/sample_partition.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::training {

caf::expected<sampler> sampler::of(const sampler_options& opts) {
  if (opts.samples == 0 || opts.global_batch == 0)
    return invalid(fmt::format("a batch of {} cannot be taken from {}: each must be one at least",
                               counted(opts.global_batch, "sample"), counted(opts.samples, "sample")));
  if (opts.last == short_batch::dropped && opts.global_batch > opts.samples)
    return invalid(fmt::format("{} never fill a batch of {}: take smaller batches", counted(opts.samples, "sample"),
                               opts.global_batch));
  return sampler{opts};
}

uint64_t sampler::steps_an_epoch() const {
  const uint64_t whole = opts_.samples / opts_.global_batch, rest = opts_.samples % opts_.global_batch;
  return whole + (rest > 0 && opts_.last == short_batch::used ? 1 : 0);
}

std::span<const uint32_t> sampler::batch(place where) {
  ensure(where.step < steps_an_epoch(), "a step lies within its epoch");
  if (epoch_ != where.epoch) {
    order_ = shuffled_samples(opts_.samples, opts_.seed, where.epoch);
    epoch_ = where.epoch;
  }
  const auto begin = where.step * opts_.global_batch;
  return std::span{order_}.subspan(begin, std::min<uint64_t>(opts_.global_batch, opts_.samples - begin));
}

std::string sampler::remark() const {
  const auto rest = opts_.samples % opts_.global_batch;
  if (rest == 0)
    return "";
  return opts_.last == short_batch::used
           ? fmt::format("the last batch of each epoch has {} in place of {}", counted(rest, "sample"),
                         opts_.global_batch)
           : fmt::format("{} of each epoch, others each time, are left out: they fill no batch of {}",
                         counted(rest, "sample"), opts_.global_batch);
}

std::span<const uint32_t> part_of_batch(std::span<const uint32_t> batch, uint32_t ranks, uint32_t rank) {
  const auto part = block_of({}, batch.size(), ranks, rank);
  return batch.subspan(part.offset, part.count);
}

} // namespace ringmaster::training
