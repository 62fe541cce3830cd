#include "client/training/requested_settings.hpp"

#include "runtime/invariants/ensure.hpp"
#include "runtime/links/link_checksum.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace ringmaster::training {

namespace {

/// A sample that cannot be read counts as zeros.
uint64_t fingerprint_of(const data_set& x) {
  constexpr uint32_t samples_max = 16;
  const auto count = std::min(samples_max, x.count());
  std::vector<float> inputs(count * x.shape().elements());
  std::vector<uint32_t> labels(count * x.labels_each());
  for (uint32_t i = 0; i < count; ++i) {
    const auto sample = static_cast<uint32_t>(uint64_t{i} * x.count() / count);
    [[maybe_unused]] auto unread = x.fill({&sample, 1},
                                          std::span{inputs}.subspan(i * x.shape().elements(), x.shape().elements()),
                                          std::span{labels}.subspan(i * x.labels_each(), x.labels_each()));
  }
  const uint64_t both[] = {link_checksum(std::as_bytes(std::span{inputs})),
                           link_checksum(std::as_bytes(std::span{labels}))};
  return link_checksum(std::as_bytes(std::span{both}));
}

/// What computes the layers: "plain".
std::string makings_text(const training_job& job) {
  std::set<std::string_view> all;
  for (auto& each : job.layers)
    all.insert(each->making());
  return fmt::format("{}", fmt::join(all, ", "));
}

} // namespace

std::string layers_text(const training_job& job) {
  std::string result;
  for (auto& each : job.layers)
    result += (result.empty() ? "" : ", ") + each->name();
  return result;
}

std::string data_text(const data_set& x) {
  return fmt::format("{} of {}, fingerprint {:016x}", counted(x.count(), "sample"), x.name(), fingerprint_of(x));
}

std::string digest_text(const data_set& x) {
  return fmt::format("{:016x}", x.digest());
}

std::vector<std::string> requested_settings(const training_job& job, const data_set& data, bool deterministic,
                                            bool mirror, const data_set* held_out) {
  const auto whole = [](const data_set& x) {
    return fmt::format("{} of {}, digest {}", counted(x.count(), "sample"), x.name(), digest_text(x));
  };
  ensure(job.strategy != nullptr && !job.layers.empty(), "a job has a strategy and layers");
  const auto& m = job.shape;
  const auto& by = job.update;
  return {
    fmt::format("strategy {}", job.strategy->name),
    fmt::format("layers {}", layers_text(job)),
    fmt::format("layers computed by {}", makings_text(job)),
    fmt::format("{}-bit numbers", 8 * bytes_of(job.as)),
    fmt::format("optimizer {}, learning rate {}, weight decay {}", name_of(by.kind), by.rate, by.weight_decay),
    fmt::format("betas {} and {}, epsilon {}", by.beta1, by.beta2, by.epsilon),
    fmt::format("seed {}", job.seed),
    fmt::format("global batch {}", m.global_batch),
    job.all_at_once ? "a micro-batch that follows from the number of ranks"
                    : fmt::format("micro-batch {}", m.micro_batch),
    fmt::format("{} tensor-parallel and {} data-parallel ranks, {} that share the model (0: the strategy chooses)",
                m.parallel.tp, m.parallel.dp, m.parallel.shard_ranks),
    fmt::format("chunks {}, prefetch {}, ZeRO stage {}, virtual ranks {}{}", m.parallel.chunks, m.prefetch,
                m.parallel.zero, m.virtual_ranks, m.parallel.sequence_parallel ? ", sequence-parallel" : ""),
    fmt::format("data: {}", whole(data)),
    held_out == nullptr ? std::string{"no held-out data"} : fmt::format("held-out data: {}", whole(*held_out)),
    fmt::format("sums in {} order, a model that the host has {}", deterministic ? "one" : "any",
                mirror ? "each step" : "now and then"), // --deterministic, --mirror
  };
}

} // namespace ringmaster::training
