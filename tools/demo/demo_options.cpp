#include "tools/demo/demo_options.hpp"

#include "messages/errc.hpp"
#include "runtime/algorithms/registry.hpp"
#include "tools/options/reduce_op_option.hpp"

#include <fmt/format.h>

namespace ringmaster {

namespace {

caf::error set_kill(demo_options& result, const std::string& text) {
  constexpr uint64_t rounds_max = 1000;
  result.kill = text != "none";
  result.kill_step.reset();
  if (text == "none" || text == "random")
    return caf::none;
  auto rounds = parse_whole(text, 0, rounds_max);
  if (!rounds)
    return invalid(fmt::format("\"{}\" is neither random, nor none, nor a number of rounds "
                               "from 0 to {}",
                               text, rounds_max));
  result.kill_step = static_cast<uint32_t>(*rounds);
  return caf::none;
}

} // namespace

void demo_options::add_to(option_table& table) {
  table.about("Runs an all-reduce on simulated devices, then the same with a device that is killed during it.");
  table.number("--devices", requested_devices_, devices_min, devices_max)
    .says("N", "simulated devices, 2 to 64")
    .otherwise(fmt::format("{}, or device.count if that is given; on another cluster the free ones, up to this number",
                           devices));
  table.number("--elements", elements, 1, uint64_t{1} << 27).says("N", "float64 elements on each, 1 to 134217728");
  add_reduce_op(table, op);
  table.word("--algorithm", algorithm, {"ring", "naive"}).says("A", "{words}");
  table.value("--kill", [this](const std::string& text) { return set_kill(*this, text); })
    .says("WHERE", "random, none, or the number of rounds after which the device fails")
    .offers({"random", "none"})
    .otherwise("random");
  table.number("--kill-rank", kill_rank, 0, 63).says("R", "the rank that fails").otherwise("random");
  table.number("--seed", seed, 1)
    .says("N", "the seed of inputs and random choices")
    .otherwise("a new one each time, which is printed");
  table.closing("The exit status is 0 if every result is right. The demo sets communicator.policy, and "
                "device.memory-bytes unless the "
                "command line has it. On another cluster only the device fails; its node starts a new one.");
}

caf::error demo_options::take_device_count(uint64_t count) {
  if (count < devices_min || count > devices_max)
    return invalid(fmt::format("--device.count={}: the demo takes {} to {} devices", count, devices_min, devices_max));
  if (requested_devices_ && *requested_devices_ != count)
    return invalid(fmt::format("--device.count={} and --devices {}: give one of them", count, *requested_devices_));
  requested_devices_ = static_cast<uint32_t>(count);
  return caf::none;
}

caf::error demo_options::check() {
  devices_given = requested_devices_.has_value();
  devices = requested_devices_.value_or(devices);
  if (kill_rank && !kill)
    return invalid("--kill-rank: with --kill none no device fails");
  if (kill_rank && *kill_rank >= devices)
    return invalid(fmt::format("--kill-rank is {}, but {} devices have ranks 0 to {}", *kill_rank, devices,
                               devices - 1));
  auto rounds = plan(proto::ALL_REDUCE, algorithm, {.world_size = devices, .count = elements})->rounds;
  if (kill_step && *kill_step > rounds)
    return invalid(fmt::format("--kill is {}, but this all-reduce has {} rounds", *kill_step, rounds));
  return caf::none;
}

} // namespace ringmaster
