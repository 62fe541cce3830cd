#include "tools/planning/plan_report.hpp"

#include "planner/estimates/exchange_times.hpp"
#include "planner/systems/pretraining_software.hpp"
#include "tools/planning/plan_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringmaster {

using namespace training;

namespace {

using sentences = std::vector<std::string>;

/// Whose speed this is, and what is known to be slower (docs/cost_models.md).
void add_software(sentences& to, const plan_outcome& x, const training_setting& how) {
  const bool calibrated = !not_calibrated(x.asked);
  const bool experts = x.asked.trained.experts.count > 0;
  const auto* software = generation_of(x.asked.system.software);
  const bool newest = software != nullptr && software->name == newest_software;
  const bool newest_rate = software != nullptr && software->has_newest_rate();
  if (software != nullptr)
    to.push_back(fmt::format("speed of --software {}: {}{}", software->name, software->what,
                             newest ? "; other software takes up to 1.6 times as long" : ""));
  if (software != nullptr && software->fully_sharded && how.shard_ranks == 0)
    to.push_back(fmt::format("--software {} was measured with fsdp alone: --schedule fsdp,hsdp keeps to it",
                             software->name));
  if (calibrated && experts && newest)
    to.push_back(
      fmt::format("with experts that is its best: published trainings took {:.1f} times as long as it would take their "
                  "own way at the median, up to {:.1f}, since their recipes launch more kernels or hide less of what "
                  "they dispatch, and {:.1f} times as long as the best plan for their GPUs, up to {:.1f}",
                  published_beside_plans_median, published_beside_plans_worst, published_beside_best_median,
                  published_beside_best_worst));
  if (calibrated && newest_rate && !was_published(how.computed_in, experts))
    to.push_back(
      fmt::format("no training of a model {} experts in {} was fitted to: its rate is that of models {} them{}",
                  experts ? "with" : "without", name_of(how.computed_in), experts ? "without" : "with",
                  experts ? "" : ", and NeMo's own of late 2024 took 1.04 to 1.1 times as long as estimated"));
  if (calibrated && experts && newest
      && (how.computed_in == number_format::fp8 || how.computed_in == number_format::nvfp4))
    to.push_back(fmt::format("experts in {} may be slower than in bf16: casts are launched beside each, and a graph of "
                             "a whole iteration there is in mxfp8 only",
                             name_of(how.computed_in)));
  const bool cores_own = how.schedule == pipeline_schedule::one_f_one_b
                         || how.schedule == pipeline_schedule::interleaved_1f1b;
  if (how.pp > 1 && !cores_own)
    to.push_back(fmt::format("Megatron Core has no {}: --framework megatron finds the best of what it has",
                             name_of(how.schedule)));
  if (software != nullptr && software->name == software_of_a100 && x.asked.devices > 512)
    to.emplace_back("no training on more than 512 A100 was fitted to");
  if (calibrated && newest_rate && x.asked.devices > 1024)
    to.emplace_back("no training on more than 1,024 GPUs was fitted to: Llama 3 405B took 1.1 to 1.3 times as long on "
                    "8,192 and 16,384 H100 in 2024, as --software megatron-2024 has it");
}

/// Weights shared fully over a network: what hides of it is fitted within domains only.
void add_sharding(sentences& to, const plan_outcome& x, const planned& best) {
  if (best.how.shard_ranks > 0 && !x.asked.system.fitted_with_flash) {
    to.emplace_back("no training that shares weights fully was fitted to on A100: what that costs is taken as on H100");
    return;
  }
  if (best.how.shard_ranks == 0 || best.how.sharers() * best.how.tp <= x.asked.system.devices_per_host)
    return;
  to.push_back(fmt::format("no training that shares weights fully over a network was fitted to: of what moves for that "
                           "{:.2f} s are estimated as hidden, {:.2f} s as exposed",
                           best.cost.hidden.gradients, best.cost.exposed.gradients));
}

/// ZeRO 2 and 3 go around as many rings as FSDP, of which they pay the bytes alone.
void add_rings(sentences& to, const plan_outcome& x, const training_setting& how) {
  constexpr double worth_a_word = 0.01;
  if (how.zero < 2)
    return;
  const auto rings = how.zero == 2 ? how.micro_batches() + 1.0 : 3.0 * how.micro_batches();
  const auto seconds = rings * x.asked.trained.layers / how.pp
                       * ring_latency(x.asked.system, how.replicas(), how.tp, how.devices());
  if (seconds > worth_a_word * x.best.front().seconds())
    to.push_back(fmt::format("the steps of zero{}'s rings among {} ranks are not in its time, as they are in FSDP's: "
                             "they would be some {:.2f} s, if nothing hides them",
                             how.zero, how.replicas(), seconds));
}

/// What is taken for granted of where GPUs lie.
void add_placement(sentences& to, const plan_outcome& x, const training_setting& how) {
  const auto filling = filling_of(how, x.asked.system);
  if (filling.straddles)
    to.push_back(fmt::format("placement: groups that a domain of {:.0f} GPUs has room for do not go into each other: "
                             "some lie in two domains, and are slower than estimated",
                             x.asked.system.devices_per_host));
  else if (filling.devices > 0)
    to.push_back(fmt::format("placement: groups that share a domain of {:.0f} GPUs fill {} of them: {} domains in all, "
                             "of which no group lies in two",
                             x.asked.system.devices_per_host, filling.devices,
                             (x.asked.devices + filling.devices - 1) / filling.devices));
}

/// Which other question has a better answer.
void add_others(sentences& to, const plan_outcome& x, double seconds) {
  if (x.fewer.devices > 0)
    to.push_back(fmt::format(
      "fewer GPUs are faster: {} of them take {:.3f} s, as they divide heads, experts, layers and the batch better",
      x.fewer.devices, x.fewer.seconds));
  if (x.batch.global_batch > 0)
    to.push_back(fmt::format("another batch trains {:.0f} % more tokens a second: {} sequences take {:.3f} s",
                             100 * (seconds / x.asked.global_batch * x.batch.global_batch / x.batch.seconds - 1),
                             x.batch.global_batch, x.batch.seconds));
}

} // namespace

std::optional<std::string> not_calibrated(const plan_question& asked) {
  const auto& on = asked.system;
  const auto attention = asked.filter.attention;
  sentences parts;
  const auto* software = generation_of(on.software);
  if (!on.constants_of.empty() && software != nullptr && was_compared_on(on, *software))
    parts.push_back(
      fmt::format("what software reaches on {} is taken as on {}; trainings there were compared with, not fitted to",
                  on.name, on.constants_of));
  else if (!on.constants_of.empty())
    parts.push_back(fmt::format("no training on {} was measured; what software reaches there is taken as on {}",
                                on.name, on.constants_of));
  if (!on.experts_of.empty() && asked.trained.experts.count > 0)
    parts.push_back(fmt::format("what experts cost beside their products is taken as on {}, with its newest software",
                                on.experts_of));
  if (!on.caution.empty())
    parts.emplace_back(on.caution);
  if (on.fitted_with_flash != (attention == attention_kernel::flash))
    parts.push_back(fmt::format("{} attention's part of the peak is set by hand{}", name_of(attention),
                                on.constants_of.empty() && attention == attention_kernel::flash
                                  ? ", and estimates are 8 to 31 % too fast beside published trainings"
                                  : ""));
  if (parts.empty())
    return std::nullopt;
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::vector<std::string> notes_of(const plan_outcome& x) {
  sentences result;
  if (x.best.empty())
    return result;
  const auto& best = x.best.front();
  add_software(result, x, best.plan.how);
  add_sharding(result, x, best.plan);
  add_rings(result, x, best.plan.how);
  add_placement(result, x, best.plan.how);
  add_others(result, x, best.seconds());
  return result;
}

} // namespace ringmaster
