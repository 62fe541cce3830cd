#include "client/training/training_run.hpp"

#include "client/training/active_run.hpp"
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/text/quantity_text.hpp"
#include "training/computed/step_world.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
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

/// For layers that cannot learn from a single sample, such as batch norm: whether each micro-batch has enough samples.
/// Errors: invalid_argument, with the nearest options that would do.
caf::error check_samples_at_once(const run_settings& x) {
  const auto found = fewest_at_once(x.job, {x.ranks, setting_of(x.job.shape)});
  for (size_t l = 0; l < x.job.layers.size(); ++l)
    if (const auto least = x.job.layers[l]->samples_min(); found < least)
      return invalid(fmt::format("layer {}, {}, needs {} at once, and {} on {} has {}: {}", l, x.job.layers[l]->name(),
                                 counted(least, "sample"), x.job.strategy->name, counted(x.ranks, "rank"), found,
                                 advice(x)));
  return caf::none;
}

} // namespace

caf::expected<sampler> order_of(const run_settings& x) {
  sampler_options order;
  order.samples = x.data.training->count();
  order.global_batch = static_cast<uint32_t>(x.job.shape.global_batch);
  order.seed = x.job.seed;
  return sampler::of(order);
}

namespace {

/// Whether this number of ranks can share each layer. Errors: those of layer::cannot_share, "layer 0, conv 3x3 ...:
/// why".
caf::error unshared(const run_settings& x, const model_layers& layers, uint32_t tensor) {
  for (size_t l = 0; tensor > 1 && l < layers.size(); ++l)
    if (auto why = layers[l]->cannot_share(tensor))
      return with_context(fmt::format("layer {}, {}", l, x.job.layers[l]->name()), why);
  return caf::none;
}

caf::error check_sharing(const run_settings& x) {
  TRY(layers, layers_for(*x.job.strategy, x.job.layers));
  const auto& strategy = *x.job.strategy;
  const auto tensor = strategy.shape(x.job.shape, x.ranks).tensor;
  const auto why = unshared(x, *layers, tensor);
  if (!why)
    return caf::none;
  auto m = x.job.shape;
  for (m.parallel.tp = tensor - 1; m.parallel.tp > 0; --m.parallel.tp)
    if (!strategy.check(m, x.ranks) && strategy.shape(m, x.ranks).tensor == m.parallel.tp
        && !unshared(x, *layers, m.parallel.tp))
      break;
  return invalid(fmt::format("{} ranks cannot share {}{}", tensor, render(why),
                             m.parallel.tp > 0 ? fmt::format("; --tensor {} would do", m.parallel.tp) : ""));
}

} // namespace

caf::error check(const run_settings& x) {
  if (x.job.strategy == nullptr || x.job.layers.empty() || x.data.training == nullptr || x.data.held_out == nullptr)
    return invalid("a training needs a strategy (job.strategy), layers (job.layers), and data, some of it held out "
                   "(data.training, data.held_out)");
  if (auto order = order_of(x); !order)
    return std::move(order.error());
  const auto& first = *x.job.layers.front();
  const auto& data = *x.data.training;
  if (x.job.shape.layers != x.job.layers.size())
    return invalid(fmt::format("the strategy is configured for {}, and the model has {}",
                               counted(x.job.shape.layers, "layer"), x.job.layers.size()));
  for (size_t l = 0; l + 1 < x.job.layers.size(); ++l)
    if (x.job.layers[l]->outputs() != x.job.layers[l + 1]->inputs())
      return invalid(fmt::format("{} has {} outputs, and {} after it takes {}", x.job.layers[l]->name(),
                                 x.job.layers[l]->outputs(), x.job.layers[l + 1]->name(),
                                 x.job.layers[l + 1]->inputs()));
  const auto steps = data.count() / x.job.shape.global_batch * x.epochs;
  if (x.kill_at && (*x.kill_at == 0 || *x.kill_at >= steps)) // once the step before it has been committed
    return invalid(fmt::format("no device can be killed in step {}: {}", *x.kill_at,
                               steps < 2 ? std::string{"this run has only one step, step 0"}
                                         : fmt::format("of this run's {}, 1 to {} are possible", counted(steps, "step"),
                                                       steps - 1)));
  if (first.inputs() != data.shape().elements())
    return invalid(fmt::format("{} takes {} inputs, and a sample of {} has {} ({})", first.name(), first.inputs(),
                               data.name(), data.shape().elements(), data.shape().text()));
  const auto classes = x.job.layers.back()->outputs() / data.labels_each();
  if (classes < data.label_count())
    return invalid(fmt::format("{} has {} outputs, and {} has {} labels", x.job.layers.back()->name(), classes,
                               data.name(), data.label_count()));
  RETURN_ERROR(x.job.strategy->check(x.job.shape, x.ranks));
  RETURN_ERROR(check_sharing(x));
  return check_samples_at_once(x);
}

caf::expected<run_outcome> train(caf::actor_system& system, coordinator_actor coordinator, run_settings settings,
                                 const run_watcher& watcher) {
  active_run mine{system, std::move(coordinator), std::move(settings), watcher};
  RETURN_ERROR(mine.prepare(true, false));
  return mine.run(nullptr);
}

caf::expected<std::optional<run_outcome>> train_together(caf::actor_system& system, process_group& group,
                                                         run_settings settings, const run_watcher& watcher) {
  active_run mine{system, group.coordinator(), std::move(settings), watcher};
  const bool leads = group.plays(0);
  RETURN_ERROR(mine.prepare(leads, true));
  if (!leads) {
    RETURN_ERROR(mine.play(group));
    return std::optional<run_outcome>{};
  }
  TRY(found, mine.run(&group));
  return std::optional{std::move(*found)};
}

} // namespace ringmaster::training
