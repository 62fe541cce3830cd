#include "tools/demo/demo_options.hpp"

#include "messages/errc.hpp"
#include "runtime/algorithms/registry.hpp"
#include "tools/options/option_table.hpp"

#include <fmt/format.h>

namespace ringmaster {

const char* const demo_help =
  R"(usage: ringmaster demo [options]

An all-reduce on simulated devices, then the same with a device that is killed in the middle of it.

  --devices N      simulated devices, 2 to 64 (8)
  --elements N     float64 elements on each, 1 to 134217728 (1048576)
  --op OP          sum, prod, min, max or avg (sum)
  --algorithm A    ring or naive (ring)
  --kill WHERE     random, none, or how many rounds are done when the device dies (random)
  --kill-rank R    which rank dies (random)
  --seed N         of the inputs and of what is random (a new one each time; it is printed)
  --section.key=V  any key of config/caf-application.conf but device.count, device.memory-bytes and communicator.policy,
                   which are the story's own; --node.join=HOST:PORT uses a cluster that runs already

The exit status is 0 if every result was right.
)";

namespace {

caf::expected<gpu_sim::ReduceOp> parse_demo_op(const std::string& text) {
  auto op = parse_reduce_op(text);
  if (op && *op == gpu_sim::PREMUL_SUM)
    return make_error(errc::invalid_argument, "\"premul_sum\" needs factors, and the demo has none");
  return op;
}

caf::error set_kill(demo_options& result, const std::string& text) {
  constexpr uint64_t rounds_max = 1000;
  result.kill = text != "none";
  result.kill_step.reset();
  if (text == "none" || text == "random")
    return caf::none;
  auto rounds = parse_whole(text, 0, rounds_max);
  if (!rounds)
    return make_error(errc::invalid_argument, fmt::format("\"{}\" is neither random, nor none, nor a number of rounds "
                                                          "from 0 to {}",
                                                          text, rounds_max));
  result.kill_step = static_cast<uint32_t>(*rounds);
  return caf::none;
}

} // namespace

caf::expected<demo_options> parse_demo_options(const std::vector<std::string>& args) {
  demo_options result;
  std::optional<uint32_t> devices;
  option_table table{"demo"};
  table.number("--devices", devices, 2, 64);
  table.number("--elements", result.elements, 1, uint64_t{1} << 27);
  table.number("--seed", result.seed, 1);
  table.parsed("--op", result.op, parse_demo_op);
  table.word("--algorithm", result.algorithm, {"ring", "naive"});
  table.value("--kill", [&](const std::string& text) { return set_kill(result, text); });
  table.number("--kill-rank", result.kill_rank, 0, 63);
  if (auto problem = table.read(args))
    return problem;
  result.devices_given = devices.has_value();
  result.devices = devices.value_or(result.devices);
  if (result.kill_rank && *result.kill_rank >= result.devices)
    return make_error(errc::invalid_argument, fmt::format("--kill-rank is {}, but {} devices have ranks 0 to {}",
                                                          *result.kill_rank, result.devices, result.devices - 1));
  auto rounds = plan(proto::ALL_REDUCE, result.algorithm, {.world_size = result.devices, .count = result.elements})->rounds;
  if (result.kill_step && *result.kill_step > rounds)
    return make_error(errc::invalid_argument, fmt::format("--kill is {}, but this all-reduce has {} rounds",
                                                          *result.kill_step, rounds));
  return result;
}

} // namespace ringmaster
