#include "tools/demo/demo.hpp"

#include "actors/calls/answers.hpp"
#include "actors/calls/wall_clock.hpp"
#include "actors/scheduling/awake_clock.hpp"
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/samples/sample_hash.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/clients/free_devices.hpp"
#include "tools/options/reduce_op_option.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

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

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>{std::chrono::steady_clock::now() - start}.count();
}

void demo::headline(const std::string& text) {
  fmt::print("{}\n", term_.bold(fmt::format("{}  {}", ++section_, text)));
}

void demo::say(const std::string& what, const std::string& outcome) {
  fmt::print("   {:<38} {}\n", what, outcome);
}

caf::expected<demo::group> demo::set_up() {
  auto comm = user_.comm_init(options_.devices, proto::SHRINK); // the survivors go on
  if (!comm)
    return std::move(comm.error());
  group g{std::move(*comm)};
  open_ = id_of(g.comm);
  std::vector<std::string> ids;
  for (uint32_t rank = 0; rank < g.size(); ++rank)
    ids.push_back(fmt::format("0x{:x}", g.device(rank)));
  say(fmt::format("CommInit({})", options_.devices),
      term_.fitted(fmt::format("communicator {}, devices {}", g.comm.commid(), fmt::join(ids, " ")), 42));
  RETURN_ERROR(joined_ && section_ == 1 ? say_layout(g) : caf::error{});
  RETURN_ERROR(take_memory(g));
  std::vector<byte_block> blocks;
  for (uint32_t rank = 0; rank < g.size(); ++rank) {
    g.alive.push_back(rank);
    g.inputs.push_back(demo_input(options_.op, options_.elements, options_.seed, rank));
    blocks.push_back(byte_block::of(g.inputs[rank]));
  }
  ensure(g.addresses.size() == g.size(), "each rank has memory");
  auto start = steady::now();
  for (uint32_t rank = 0; rank < g.size(); ++rank)
    RETURN_ERROR(user_.copy_to_device(g.device(rank), g.address(rank), blocks[rank]));
  say("Memcpy, host to device", fmt::format("{} x {}, {:.1f} ms", g.size(), bytes_text(bytes()), ms_since(start)));
  return g;
}

caf::error demo::take_memory(group& g) {
  for (uint32_t rank = 0; rank < g.size(); ++rank) {
    TRY(address, user_.allocate(g.device(rank), 2 * bytes()));
    g.addresses.push_back(*address);
    taken_.emplace_back(g.device(rank), *address);
  }
  return caf::none;
}

caf::error demo::say_layout(const group& g) {
  TRY(cluster, user_.devices());
  say("how they lie", rank_layout{g.comm, *cluster}.summary());
  return caf::none;
}

caf::error demo::enqueue(const group& g, const std::string& algorithm, uint64_t count, bool out_of_place) {
  ensure(count <= options_.elements, "an operation fits into the memory that was allocated");
  RETURN_ERROR(user_.group_start(id_of(g.comm)));
  caf::expected<sequence_number> sequence = sequence_number{};
  if (auto known = find_algorithm(proto::ALL_REDUCE, algorithm); known && (*known)->is.course_call) {
    gpu_sim::AllReduceRingRequest request;
    for (uint32_t now = 0; now < g.alive.size(); ++now) {
      auto address = g.address(g.alive[now]);
      (*request.mutable_memaddrs())[now].set_value(address);
      if (out_of_place)
        (*request.mutable_outputaddrs())[now].set_value(address + bytes());
    }
    request.set_commid(g.comm.commid());
    request.set_count(count);
    request.set_op(options_.op);
    sequence = user_.all_reduce_ring(request);
  } else {
    proto::CollectiveRequest request;
    for (auto rank : g.alive) {
      request.add_inputs(g.address(rank));
      if (out_of_place)
        request.add_outputs(g.address(rank) + bytes());
    }
    request.set_comm_id(g.comm.commid());
    request.mutable_collective()->set_algorithm(algorithm);
    request.mutable_collective()->set_op(options_.op);
    request.mutable_collective()->set_count(count);
    sequence = user_.collective(request);
  }
  if (!sequence)
    return std::move(sequence.error());
  return user_.group_end(id_of(g.comm));
}

caf::expected<gpu_sim::GetCommStatusResponse> demo::poll(group& g, uint64_t& polls) {
  constexpr auto limit = std::chrono::seconds{60};
  auto give_up = steady::now() + limit;
  for (polls = 1;; ++polls) {
    auto status = user_.status(id_of(g.comm));
    if (status && status->status() == gpu_sim::FAILED)
      return error_in(*status);
    if (status && status->status() == gpu_sim::SUCCESS)
      note_alive(g, *status);
    if (!status || status->status() == gpu_sim::SUCCESS)
      return status;
    if (steady::now() > give_up)
      return user_.wait(id_of(g.comm), std::chrono::milliseconds{1}); // says which rank does what
    std::this_thread::sleep_for(std::chrono::microseconds{500});
  }
}

void demo::note_alive(group& g, const gpu_sim::GetCommStatusResponse& status) {
  std::erase_if(g.alive, [&](uint32_t rank) {
    return std::none_of(status.devices().begin(), status.devices().end(),
                        [&](auto& x) { return id_of(x) == g.device(rank); });
  });
}

std::vector<double> demo::expected(const group& g, uint64_t count) const {
  std::vector<const std::vector<double>*> inputs;
  for (auto rank : g.alive)
    inputs.push_back(&g.inputs[rank]);
  auto result = serial_all_reduce(options_.op, inputs);
  result.resize(count);
  return result;
}

caf::error demo::check(const group& g) {
  auto right_one = expected(g, options_.elements);
  auto start = steady::now();
  uint64_t wrong = 0;
  for (auto rank : g.alive) {
    TRY(block, user_.copy_to_host(g.device(rank), g.address(rank), bytes()));
    auto found = block->as<double>();
    if (std::memcmp(found.data(), right_one.data(), bytes()) == 0)
      continue;
    for (uint64_t i = 0; i < options_.elements; ++i)
      wrong += std::memcmp(&found[i], &right_one[i], sizeof(double)) != 0;
  }
  say("Memcpy, device to host",
      fmt::format("{} x {}, {:.1f} ms", g.alive.size(), bytes_text(bytes()), ms_since(start)));
  auto compared = with_commas(g.alive.size() * options_.elements);
  say(fmt::format("compare with a serial {}", name_of(options_.op)),
      wrong == 0 ? term_.good(fmt::format("all {} elements equal, bit for bit", compared))
                 : term_.bad(fmt::format("{} of {} elements differ", with_commas(wrong), compared)));
  right = right && wrong == 0;
  return caf::none;
}

caf::error demo::give_back() {
  caf::error problem;
  auto keep = [&](caf::error x) {
    if (!problem && code_of(x) != errc::unknown_device) // whose memory went with it
      problem = std::move(x);
  };
  if (doomed_.value != 0)
    keep(user_.inject(std::exchange(doomed_, device_id{}), proto::FaultRequest{}));
  if (open_.value != 0)
    keep(user_.destroy(std::exchange(open_, communicator_id{})));
  for (auto [device, address] : std::exchange(taken_, {}))
    keep(user_.free(device, address));
  return problem;
}

caf::error demo::act_one() {
  headline(fmt::format("{} all-reduce on {} devices, {} float64 each", options_.algorithm, options_.devices,
                       with_commas(options_.elements)));
  TRY(g, set_up());
  auto start = steady::now();
  RETURN_ERROR(enqueue(*g, options_.algorithm, options_.elements, false));
  say("GroupStart, AllReduce, GroupEnd", "enqueued");
  uint64_t polls = 0;
  TRY(status, poll(*g, polls));
  say("GetCommStatus", fmt::format("{} after {:.1f} ms, {}", gpu_sim::Status_Name(status->status()), ms_since(start),
                                   counted(polls, "poll")));
  RETURN_ERROR(check(*g));
  auto problem = give_back();
  say("CommDestroy", problem ? term_.bad("failed") : "done");
  fmt::print("\n");
  return problem;
}

caf::error demo::act_two() {
  headline("The same, and a device dies in the middle of it");
  TRY(g, set_up());
  auto rounds
    = plan(proto::ALL_REDUCE, options_.algorithm, {.world_size = g->size(), .count = options_.elements})->rounds;
  auto victim = options_.kill_rank ? *options_.kill_rank : static_cast<uint32_t>(random_() % g->size());
  if (options_.kill_step && *options_.kill_step > rounds)
    return invalid(fmt::format("--kill is {}, but this all-reduce has {} rounds", *options_.kill_step, rounds));
  auto step = options_.kill_step ? *options_.kill_step : static_cast<uint32_t>(random_() % rounds);
  proto::FaultRequest fault;
  fault.set_at_step(true);
  fault.set_step(step);
  RETURN_ERROR(user_.inject(g->device(victim), fault));
  doomed_ = g->device(victim);
  say("fault injection", fmt::format("rank {} (device 0x{:x}) dies after {} of {}", victim, g->device(victim), step,
                                     counted(rounds, "round")));
  auto since = wall_clock::of_this_process().unix_ns(awake_clock::actor_now());
  RETURN_ERROR(enqueue(*g, options_.algorithm, options_.elements, false));
  uint64_t polls = 0;
  TRY(status, poll(*g, polls));
  if (std::count(g->alive.begin(), g->alive.end(), victim) == 0)
    doomed_ = {};
  RETURN_ERROR(tell_events(*g, since));
  if (status->epoch() < 2 || std::count(g->alive.begin(), g->alive.end(), victim) > 0) {
    right = false;
    say("GetCommStatus", term_.bad(fmt::format("epoch {} on {} devices: the death went unnoticed", status->epoch(),
                                               status->devices_size())));
  } else {
    say("GetCommStatus", fmt::format("{}, epoch {} on {}", gpu_sim::Status_Name(status->status()), status->epoch(),
                                     counted(static_cast<uint64_t>(status->devices_size()), "device")));
  }
  RETURN_ERROR(check(*g));
  auto problem = give_back();
  say("CommDestroy", problem ? term_.bad("failed") : "done");
  fmt::print("\n");
  return problem;
}

std::vector<double> demo_input(gpu_sim::ReduceOp op, uint64_t count, uint64_t seed, uint32_t rank) {
  const auto start = sample_seed(rank, seed);
  std::vector<double> result(count);
  for (uint64_t i = 0; i < count; ++i) {
    const auto bits = sample_hash(start, i);
    if (op == gpu_sim::PROD)
      result[i] = (bits & 1 ? 1.0 : -1.0) * (bits & 2 ? 0.5 : 2.0);
    else
      result[i] = static_cast<double>(sample_whole_number(bits, 1 << 20)) / 1024.0;
  }
  return result;
}

std::vector<double> serial_all_reduce(gpu_sim::ReduceOp op, const std::vector<const std::vector<double>*>& inputs) {
  auto result = *inputs.front();
  for (size_t rank = 1; rank < inputs.size(); ++rank)
    for (size_t i = 0; i < result.size(); ++i) {
      auto x = (*inputs[rank])[i];
      switch (op) {
        case gpu_sim::PROD: result[i] *= x; break;
        case gpu_sim::MIN: result[i] = std::min(result[i], x); break;
        case gpu_sim::MAX: result[i] = std::max(result[i], x); break;
        default: result[i] += x; break;
      }
    }
  if (op == gpu_sim::AVG)
    for (auto& x : result)
      x /= static_cast<double>(inputs.size());
  return result;
}

} // namespace ringmaster
