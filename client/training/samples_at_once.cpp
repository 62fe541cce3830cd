#include "client/training/samples_at_once.hpp"

#include "messages/errc.hpp"
#include "runtime/text/quantity_text.hpp"
#include "training/computed/step_world.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string>
#include <vector>

namespace ringmaster::training {

namespace {

bool would_do(const run_settings& x) {
  return can_train(x.job, {x.ranks, setting_of(x.job.shape)});
}

/// The option with the first of `count` values from, from + by, ... that would do; nothing if none would.
template <class Set>
std::optional<std::string> first_of(std::string_view option, const run_settings& x, uint64_t from, int by,
                                    uint64_t count, Set set) {
  constexpr uint64_t most = 256; // values further off are another run
  for (uint64_t i = 0; i < std::min(count, most); ++i) {
    const auto value = by > 0 ? from + i : from - i;
    auto changed = x;
    set(changed, value);
    if (would_do(changed))
      return fmt::format("{} {}", option, value);
  }
  return std::nullopt;
}

std::string advice(const run_settings& x) {
  const auto& m = x.job.shape;
  const auto batch_at_once = [](run_settings& of, uint64_t value) {
    of.job.all_at_once = false;
    of.job.shape.micro_batch = value;
  };
  const auto global_batch = [](run_settings& of, uint64_t value) { of.job.shape.global_batch = value; };
  const auto virtual_ranks = [](run_settings& of, uint64_t value) {
    of.job.shape.virtual_ranks = static_cast<uint32_t>(value);
  };
  const auto ranks = [](run_settings& of, uint64_t value) { of.ranks = static_cast<uint32_t>(value); };
  std::vector<std::string> found;
  const auto add = [&](std::optional<std::string> what) {
    if (what)
      found.push_back(std::move(*what));
  };
  add(first_of("--micro-batch", x, m.micro_batch + 1, 1, m.global_batch - m.micro_batch, batch_at_once));
  if (found.empty())
    add(first_of("--micro-batch", x, m.micro_batch - 1, -1, m.micro_batch - 1, batch_at_once));
  add(first_of("--global-batch", x, m.global_batch + 1, 1, x.data.training->count() - m.global_batch, global_batch));
  if (m.virtual_ranks > 1)
    add(first_of("--virtual-ranks", x, m.virtual_ranks - 1, -1, m.virtual_ranks - 1, virtual_ranks));
  else
    add(first_of("--ranks", x, x.ranks - 1, -1, x.ranks - 1, ranks));
  return found.empty() ? "no --micro-batch, --global-batch or number of ranks near these would do"
                       : fmt::format("{} would do", fmt::join(found, " or "));
}

} // namespace

caf::error check_samples_at_once(const run_settings& x) {
  const auto found = fewest_at_once(x.job, {x.ranks, setting_of(x.job.shape)});
  for (size_t l = 0; l < x.job.layers.size(); ++l)
    if (const auto least = x.job.layers[l]->samples_min(); found < least)
      return make_error(errc::invalid_argument,
                        fmt::format("layer {}, {}, needs {} at once, and {} on {} has {}: {}", l,
                                    x.job.layers[l]->name(), counted(least, "sample"), x.job.strategy->name,
                                    counted(x.ranks, "rank"), found, advice(x)));
  return caf::none;
}

} // namespace ringmaster::training
