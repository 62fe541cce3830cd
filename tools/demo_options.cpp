#include "tools/demo_options.hpp"

#include "messages/errc.hpp"
#include "runtime/schedule.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <iterator>
#include <string_view>

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

constexpr std::string_view known_options[] = {"--devices", "--elements", "--seed",      "--op",
                                              "--kill",    "--algorithm", "--kill-rank"};

caf::expected<uint64_t> parse_number(const std::string& option, const std::string& text, uint64_t min, uint64_t max) {
  uint64_t value = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || value < min || value > max)
    return make_error(errc::invalid_argument,
                      fmt::format("{} is \"{}\", but must be an integer from {} to {}", option, text, min, max));
  return value;
}

caf::error apply(demo_options& result, const std::string& option, const std::string& value) {
  auto number = [&](auto& target, uint64_t min, uint64_t max) -> caf::error {
    auto x = parse_number(option, value, min, max);
    if (!x)
      return std::move(x.error());
    target = static_cast<std::decay_t<decltype(target)>>(*x);
    return caf::none;
  };
  if (option == "--devices") {
    result.devices_given = true;
    return number(result.devices, 2, 64);
  }
  if (option == "--elements")
    return number(result.elements, 1, uint64_t{1} << 27);
  if (option == "--seed")
    return number(result.seed, 1, UINT64_MAX);
  if (option == "--op") {
    auto op = parse_reduce_op(value);
    if (!op)
      return std::move(op.error());
    if (*op == gpu_sim::PREMUL_SUM)
      return make_error(errc::invalid_argument, "--op is \"premul_sum\", which needs factors: the demo has none");
    result.op = *op;
    return caf::none;
  }
  if (option == "--algorithm") {
    result.algorithm = value;
    if (value == "ring" || value == "naive")
      return caf::none;
    return make_error(errc::invalid_argument, fmt::format("--algorithm is \"{}\", but must be ring or naive", value));
  }
  uint32_t chosen = 0;
  if (option == "--kill") {
    result.kill = value != "none";
    if (value == "none" || value == "random")
      return caf::none;
    if (number(chosen, 0, 1000))
      return make_error(errc::invalid_argument, fmt::format("--kill is \"{}\", but must be random, none, or a number of "
                                                            "rounds from 0 to 1000",
                                                            value));
    result.kill_step = chosen;
    return caf::none;
  }
  auto problem = number(chosen, 0, 63); // --kill-rank
  result.kill_rank = chosen;
  return problem;
}

} // namespace

caf::expected<demo_options> parse_demo_options(const std::vector<std::string>& args) {
  demo_options result;
  for (size_t i = 0; i < args.size(); ++i) {
    auto equals = args[i].find('=');
    auto option = args[i].substr(0, equals);
    if (option.rfind("--", 0) != 0)
      return make_error(errc::invalid_argument, fmt::format("\"{}\" is no option; see ringmaster demo --help", args[i]));
    if (std::find(std::begin(known_options), std::end(known_options), option) == std::end(known_options))
      return make_error(errc::invalid_argument, fmt::format("there is no option {}; see ringmaster demo --help", option));
    if (equals == std::string::npos && i + 1 == args.size())
      return make_error(errc::invalid_argument, fmt::format("{} needs a value; see ringmaster demo --help", option));
    auto value = equals != std::string::npos ? args[i].substr(equals + 1) : args[++i];
    if (auto problem = apply(result, option, value))
      return problem;
  }
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
