#include "tools/planning/failures/failure_options.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "planner/failures/failure_simulation.hpp"
#include "runtime/text/quantity_parse.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

using namespace training;

namespace {

constexpr uint32_t spares_max = 65536, plays_max = 1000;

caf::expected<double> parse_shape(const std::string& text) {
  const auto x = decimal_in(text);
  if (!x || !(*x >= life_shape_min && *x <= life_shape_max))
    return invalid(fmt::format("\"{}\" is not a number from {} to {}", text, life_shape_min, life_shape_max));
  return *x;
}

} // namespace

void failure_options::add_to(option_table& table) {
  auto duration = [&](const std::string& name, std::optional<double>& target) -> option& {
    return table.parsed(name, target, parse_duration_s);
  };
  duration("--gpu-mttf", gpu_mttf_s)
    .says("T", "mean time to failure of a GPU with its share of the host, such as 50000h: what failures leave of the "
               "best plan")
    .otherwise("nothing fails");
  duration("--checkpoint-write", checkpoint_write_s).says("T", "that a checkpoint stops training").otherwise("30s");
  duration("--checkpoint-every", interval_s).says("T", "training between two checkpoints").otherwise("the best");
  duration("--restart", restart_s)
    .says("T", "from a failure until training runs again, the detection included")
    .otherwise("5min");
  duration("--detection", detection_s).says("T", "from a failure until it is known").otherwise("2.5s");
  duration("--repair", repair_s).says("T", "until a failed host is back").otherwise("24h");
  table.number("--spares", spares, 0, spares_max).says("N", "hosts that stand by").otherwise("0");
  table.flag("--shrink", shrink).says("also: those that are left repeat the step, in place of a restart");
  duration("--join", join_s)
    .says("T", "that training stops while a host joins one that shrank")
    .otherwise("as --checkpoint-write");
  duration("--run", run_s).says("T", "the run's length").otherwise("30d");
  table.number("--plays", plays, 1, plays_max)
    .says("N", "also simulates the run N times, failure by failure")
    .otherwise("none");
  table.parsed("--life-shape", life_shape, parse_shape)
    .says("K", "of the Weibull distribution of hosts' lives that are played: below 1 the new fail, above it the old")
    .otherwise("1, the exponential one");
}

std::string failure_options::given() const {
  return gpu_mttf_s           ? "--gpu-mttf"
         : checkpoint_write_s ? "--checkpoint-write"
         : interval_s         ? "--checkpoint-every"
         : restart_s          ? "--restart"
         : detection_s        ? "--detection"
         : repair_s           ? "--repair"
         : spares             ? "--spares"
         : shrink             ? "--shrink"
         : join_s             ? "--join"
         : run_s              ? "--run"
         : plays              ? "--plays"
         : life_shape         ? "--life-shape"
                              : "";
}

caf::error failure_options::check() const {
  auto refused = [](std::string why) { return invalid(std::move(why)); };
  if (!gpu_mttf_s && !given().empty())
    return refused(given() + " is of a run in which hosts fail: say how often, such as --gpu-mttf 50000h");
  if (join_s && !shrink)
    return refused("--join is of runs that shrink: give --shrink, too");
  if (interval_s && *interval_s == 0)
    return refused("--checkpoint-every must be longer than 0; without it, it is the best interval");
  if (life_shape && !plays)
    return refused("--life-shape is of runs that are played: say how many, such as --plays 10");
  auto asked = question({});
  return asked ? caf::none : std::move(asked.error());
}

caf::expected<failure_question> failure_options::question(failure_question x) const {
  x.spares = spares.value_or(x.spares);
  x.gpu_mttf_s = gpu_mttf_s.value_or(x.gpu_mttf_s);
  x.checkpoint_write_s = checkpoint_write_s.value_or(x.checkpoint_write_s);
  x.restart_s = restart_s.value_or(x.restart_s);
  // A restart that is quicker than the default detection also detects failures in time.
  x.detection_s = detection_s.value_or(std::min(x.detection_s, x.restart_s));
  x.repair_s = repair_s.value_or(x.repair_s);
  x.join_s = join_s.value_or(x.checkpoint_write_s); // as many bytes of each rank
  x.run_s = run_s.value_or(x.run_s);
  if (interval_s)
    x.interval_s = std::max(*interval_s, x.step_s); // none is shorter
  RETURN_ERROR(training::check(x));
  return x;
}

} // namespace ringmaster
