#include "tools/demo_command.hpp"

#include "actors/client.hpp"
#include "actors/cluster.hpp"
#include "messages/errc.hpp"
#include "runtime/quantity_text.hpp"
#include "runtime/record_text.hpp"
#include "runtime/schedule.hpp"
#include "tools/demo_data.hpp"
#include "tools/demo_options.hpp"
#include "tools/program.hpp"
#include "tools/terminal.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <random>
#include <thread>
#include <unistd.h>

namespace ringmaster {

namespace {

using steady = std::chrono::steady_clock;

double ms_since(steady::time_point start) {
  return std::chrono::duration<double, std::milli>{steady::now() - start}.count();
}

/// The story. Each act returns what went wrong, if anything.
class demo {
public:
  demo(client& user, const demo_options& opts) : user_(user), options_(opts), random_(opts.seed) {}

  caf::error act_one();
  caf::error act_two();
  caf::error compare_algorithms();
  caf::error last_lines();

  bool right = true; ///< Whether every result was.

private:
  struct group {
    gpu_sim::CommInitResponse comm;
    std::vector<std::vector<double>> inputs;

    uint32_t size() const { return static_cast<uint32_t>(comm.devices_size()); }
    uint64_t device(uint32_t rank) const { return comm.devices(static_cast<int>(rank)).deviceid().value(); }
    uint64_t address(uint32_t rank) const { return comm.devices(static_cast<int>(rank)).minmemaddr().value(); }
  };

  void say(const std::string& what, const std::string& outcome) { fmt::print("   {:<38} {}\n", what, outcome); }
  uint64_t bytes() const { return options_.elements * sizeof(double); }

  caf::expected<group> set_up();
  /// The course's sequence of calls; `out_of_place` writes behind the inputs.
  caf::error enqueue(const group& g, const std::string& algorithm, uint64_t count, bool out_of_place);
  caf::expected<gpu_sim::GetCommStatusResponse> poll(const group& g, uint64_t& polls);
  caf::error check(const group& g, const std::vector<uint32_t>& ranks);
  caf::error tell_events(const group& g, uint64_t since_ns);
  caf::expected<double> measure(const group& g, const std::string& algorithm, uint64_t count);

  client& user_;
  const demo_options& options_;
  std::mt19937_64 random_;
  terminal term_{stdout};
  uint64_t measured_ = 0; ///< The communicator of the table: its operations are many.
};

caf::expected<demo::group> demo::set_up() {
  auto comm = user_.comm_init(options_.devices, proto::SHRINK); // the story is that of the survivors
  if (!comm)
    return std::move(comm.error());
  group g{std::move(*comm), {}};
  std::vector<std::string> ids;
  for (uint32_t rank = 0; rank < g.size(); ++rank)
    ids.push_back(fmt::format("0x{:x}", g.device(rank)));
  say(fmt::format("CommInit({})", options_.devices),
      fmt::format("communicator {}, devices {}", g.comm.commid(), fmt::join(ids, " ")));
  std::vector<byte_block> blocks;
  for (uint32_t rank = 0; rank < g.size(); ++rank) {
    g.inputs.push_back(demo_input(options_.op, options_.elements, options_.seed, rank));
    blocks.push_back(byte_block::of(g.inputs[rank]));
  }
  auto start = steady::now();
  for (uint32_t rank = 0; rank < g.size(); ++rank)
    if (auto problem = user_.copy_to_device(g.device(rank), g.address(rank), blocks[rank]))
      return problem;
  say("Memcpy, host to device", fmt::format("{} times {}, {:.1f} ms", g.size(), bytes_text(bytes()), ms_since(start)));
  return g;
}

caf::error demo::enqueue(const group& g, const std::string& algorithm, uint64_t count, bool out_of_place) {
  if (auto problem = user_.group_start(g.comm.commid()))
    return problem;
  gpu_sim::AllReduceRingRequest ring;
  for (uint32_t rank = 0; rank < g.size(); ++rank) {
    (*ring.mutable_memaddrs())[rank].set_value(g.address(rank));
    if (out_of_place)
      (*ring.mutable_outputaddrs())[rank].set_value(g.address(rank) + bytes());
  }
  ring.set_commid(g.comm.commid());
  ring.set_count(count);
  ring.set_op(options_.op);
  caf::expected<uint64_t> sequence = 0u;
  if (algorithm == "ring") {
    sequence = user_.all_reduce_ring(ring);
  } else {
    proto::CollectiveRequest request;
    request.set_comm_id(g.comm.commid());
    request.set_algorithm(algorithm);
    request.set_op(options_.op);
    request.set_count(count);
    *request.mutable_inputs() = ring.memaddrs();
    *request.mutable_outputs() = ring.outputaddrs();
    sequence = user_.collective(request);
  }
  if (!sequence)
    return std::move(sequence.error());
  return user_.group_end(g.comm.commid());
}

caf::expected<gpu_sim::GetCommStatusResponse> demo::poll(const group& g, uint64_t& polls) {
  constexpr auto limit = std::chrono::seconds{60};
  auto give_up = steady::now() + limit;
  for (polls = 1;; ++polls) {
    auto status = user_.status(g.comm.commid());
    if (status && status->status() == gpu_sim::FAILED)
      return make_error(errc::aborted, status->error());
    if (!status || status->status() == gpu_sim::SUCCESS)
      return status;
    if (steady::now() > give_up)
      return user_.wait(g.comm.commid(), std::chrono::milliseconds{1}); // says which rank does what
    std::this_thread::sleep_for(std::chrono::microseconds{500});
  }
}

caf::error demo::check(const group& g, const std::vector<uint32_t>& ranks) {
  std::vector<const std::vector<double>*> inputs;
  for (auto rank : ranks)
    inputs.push_back(&g.inputs[rank]);
  auto expected = serial_all_reduce(options_.op, inputs);
  auto start = steady::now();
  uint64_t wrong = 0;
  for (auto rank : ranks) {
    auto block = user_.copy_to_host(g.device(rank), g.address(rank), bytes());
    if (!block)
      return std::move(block.error());
    auto found = block->as<double>();
    for (uint64_t i = 0; i < options_.elements; ++i)
      wrong += std::memcmp(&found[i], &expected[i], sizeof(double)) != 0;
  }
  say("Memcpy, device to host", fmt::format("{} times {}, {:.1f} ms", ranks.size(), bytes_text(bytes()), ms_since(start)));
  auto compared = with_commas(ranks.size() * options_.elements);
  say(fmt::format("compare with a serial {}", name_of(options_.op)),
      wrong == 0 ? term_.good(fmt::format("all {} elements equal, bit for bit", compared))
                 : term_.bad(fmt::format("{} of {} elements differ", with_commas(wrong), compared)));
  right = right && wrong == 0;
  return caf::none;
}

caf::error demo::act_one() {
  fmt::print("{}\n", term_.bold(fmt::format("1  {} {} on {} devices, {} float64 each", options_.algorithm,
                                            "all-reduce", options_.devices, with_commas(options_.elements))));
  auto g = set_up();
  if (!g)
    return std::move(g.error());
  auto start = steady::now();
  if (auto problem = enqueue(*g, options_.algorithm, options_.elements, false))
    return problem;
  say("GroupStart, AllReduce, GroupEnd", "enqueued");
  uint64_t polls = 0;
  auto status = poll(*g, polls);
  if (!status)
    return std::move(status.error());
  say("GetCommStatus", fmt::format("{} after {:.1f} ms, {} polls", gpu_sim::Status_Name(status->status()),
                                   ms_since(start), polls));
  std::vector<uint32_t> all(g->size());
  for (uint32_t rank = 0; rank < g->size(); ++rank)
    all[rank] = rank;
  if (auto problem = check(*g, all))
    return problem;
  auto problem = user_.destroy(g->comm.commid());
  say("CommDestroy", problem ? term_.bad("failed") : "done");
  fmt::print("\n");
  return problem;
}

caf::error demo::act_two() {
  fmt::print("{}\n", term_.bold("2  The same, and a device dies in the middle of it"));
  auto g = set_up();
  if (!g)
    return std::move(g.error());
  auto rounds = plan(proto::ALL_REDUCE, options_.algorithm, {g->size(), 0, options_.elements})->rounds;
  auto victim = options_.kill_rank ? *options_.kill_rank : static_cast<uint32_t>(random_() % g->size());
  if (options_.kill_step && *options_.kill_step > rounds)
    return make_error(errc::invalid_argument, fmt::format("--kill is {}, but this all-reduce has {} rounds", *options_.kill_step,
                                                          rounds));
  auto step = options_.kill_step ? *options_.kill_step : static_cast<uint32_t>(random_() % rounds);
  proto::FaultRequest fault;
  fault.set_at_step(true);
  fault.set_step(step);
  if (auto problem = user_.inject(g->device(victim), fault))
    return problem;
  say("fault injection", fmt::format("rank {} (device 0x{:x}) dies after {} of {} rounds", victim, g->device(victim), step,
                                     rounds));
  auto since = wall_clock::of_this_process().unix_ns(steady::now());
  if (auto problem = enqueue(*g, options_.algorithm, options_.elements, false))
    return problem;
  uint64_t polls = 0;
  auto status = poll(*g, polls);
  if (!status)
    return std::move(status.error());
  if (auto problem = tell_events(*g, since))
    return problem;
  std::vector<uint32_t> survivors;
  for (uint32_t rank = 0; rank < g->size(); ++rank)
    if (rank != victim)
      survivors.push_back(rank);
  if (status->epoch() < 2 || static_cast<size_t>(status->devices_size()) != survivors.size()) {
    right = false;
    say("GetCommStatus", term_.bad(fmt::format("epoch {} on {} devices: the death went unnoticed", status->epoch(),
                                               status->devices_size())));
  } else {
    say("GetCommStatus", fmt::format("{}, epoch {} on {} devices", gpu_sim::Status_Name(status->status()),
                                     status->epoch(), status->devices_size()));
  }
  if (auto problem = check(*g, survivors))
    return problem;
  auto problem = user_.destroy(g->comm.commid());
  say("CommDestroy", problem ? term_.bad("failed") : "done");
  fmt::print("\n");
  return problem;
}

caf::error demo::tell_events(const group& g, uint64_t since_ns) {
  auto records = user_.journal_tail(500);
  if (!records)
    return std::move(records.error());
  auto tell = [&](const proto::Record& x, const std::string& text) {
    auto ms = (static_cast<double>(x.time_ns()) - static_cast<double>(since_ns)) / 1e6;
    fmt::print("     {} {}\n", term_.dim(fmt::format("{:+9.2f} ms", ms)), text);
  };
  for (auto& x : *records) {
    if (x.time_ns() < since_ns)
      continue;
    if (x.has_operation_started() && x.operation_started().comm_id() == g.comm.commid())
      tell(x, fmt::format("the all-reduce starts on {} devices, epoch {}", x.operation_started().world_size(),
                          x.operation_started().epoch()));
    else if (x.has_fault_injected())
      tell(x, term_.bad(fmt::format("device 0x{:x} dies: {}", x.fault_injected().device_id(), x.fault_injected().what())));
    else if (x.has_device_died())
      tell(x, fmt::format("noticed by {}: device 0x{:x} is gone", x.device_died().noticed_by(), x.device_died().device_id()));
    else if (x.has_device_joined())
      tell(x, fmt::format("its supervisor has started device 0x{:x}, a spare", x.device_joined().metadata().deviceid().value()));
    else if (x.has_epoch_opened())
      tell(x, fmt::format("epoch {} opens on {} devices; {} operation runs again", x.epoch_opened().epoch(),
                          x.epoch_opened().device_ids_size(), x.epoch_opened().rerun_size()));
    else if (x.has_operation_ended() && x.operation_ended().comm_id() == g.comm.commid())
      tell(x, term_.good(fmt::format("the all-reduce has ended, attempt {}: {}", x.operation_ended().attempts(),
                                     gpu_sim::Status_Name(x.operation_ended().status()))));
  }
  return caf::none;
}

caf::expected<double> demo::measure(const group& g, const std::string& algorithm, uint64_t count) {
  constexpr int runs = 7;
  std::vector<double> times;
  for (int i = 0; i < runs + 2; ++i) {
    auto start = steady::now();
    if (auto problem = enqueue(g, algorithm, count, true))
      return problem;
    auto status = user_.wait(g.comm.commid(), std::chrono::seconds{60});
    if (!status)
      return std::move(status.error());
    if (status->status() != gpu_sim::SUCCESS)
      return make_error(errc::aborted, status->error());
    if (i >= 2)
      times.push_back(ms_since(start) * 1000);
  }
  std::vector<const std::vector<double>*> inputs;
  for (auto& x : g.inputs)
    inputs.push_back(&x);
  auto expected = serial_all_reduce(options_.op, inputs);
  for (uint32_t rank = 0; rank < g.size(); ++rank) {
    auto found = user_.copy_to_host(g.device(rank), g.address(rank) + bytes(), count * sizeof(double));
    if (!found)
      return std::move(found.error());
    if (count > 0 && std::memcmp(found->data(), expected.data(), found->size()) != 0)
      return make_error(errc::corrupt, fmt::format("{} of {} elements: rank {} has a wrong result", algorithm, count, rank));
  }
  std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
  return times[runs / 2];
}

caf::error demo::compare_algorithms() {
  fmt::print("{}\n", term_.bold(fmt::format("3  Naive against ring, {} devices, medians of 7, results checked",
                                            options_.devices)));
  auto g = set_up();
  if (!g)
    return std::move(g.error());
  measured_ = g->comm.commid();
  fmt::print("   {:>12}  {:<9} {:>12} {:>12} {:>12}\n", "size", "algorithm", "time us", "algbw GB/s", "busbw GB/s");
  std::vector<uint64_t> counts;
  for (auto divisor : {512, 32, 1})
    if (options_.elements / divisor > 0)
      counts.push_back(options_.elements / divisor);
  for (auto count : counts)
    for (auto algorithm : {"naive", "ring"}) {
      auto time_us = measure(*g, algorithm, count);
      if (!time_us)
        return std::move(time_us.error());
      auto algbw = static_cast<double>(count * sizeof(double)) / *time_us / 1e3;
      auto busbw = algbw * 2 * (g->size() - 1) / g->size();
      fmt::print("   {:>12}  {:<9} {:>12.1f} {:>12.2f} {:>12.2f}\n", bytes_text(count * sizeof(double)), algorithm, *time_us,
                 algbw, busbw);
    }
  fmt::print("\n");
  return user_.destroy(g->comm.commid());
}

caf::error demo::last_lines() {
  constexpr size_t lines_max = 12;
  fmt::print("{}\n", term_.bold("4  The last lines of the log, but for copies and each rank's reports"));
  if (auto problem = user_.journal_flush())
    return problem;
  auto records = user_.journal_tail(1000);
  if (!records)
    return std::move(records.error());
  std::erase_if(*records, [&](auto& x) {
    bool measured = (x.has_operation_ended() && x.operation_ended().comm_id() == measured_)
                    || (x.has_operation_started() && x.operation_started().comm_id() == measured_)
                    || (x.has_operation_enqueued() && x.operation_enqueued().request().comm_id() == measured_);
    return x.has_command_ended() || x.has_rank_ended() || measured;
  });
  if (records->size() > lines_max)
    records->erase(records->begin(), records->end() - lines_max);
  for (auto& x : *records)
    fmt::print("   {}\n", term_.fitted(text_of(x), 3));
  return caf::none;
}

/// Where the demo's journal goes: one place for all runs of a user, or one of its own while that is in use.
std::string journal_dir() {
  auto dir = std::filesystem::temp_directory_path() / fmt::format("ringmaster-demo-{}", ::getuid());
  std::error_code ignored;
  if (journal_store::open({dir, journal_sync::never, 1, 0}))
    std::filesystem::remove_all(dir, ignored); // that of an earlier run
  else if (std::filesystem::exists(dir))
    dir += fmt::format("-{}", ::getpid());
  return dir;
}

} // namespace

int demo_command(const std::vector<std::string>& args) {
  if (std::find(args.begin(), args.end(), "--help") != args.end()) {
    fmt::print("{}", demo_help);
    return 0;
  }
  configuration cfg;
  if (auto problem = cfg.read(args, "config/caf-application.conf"))
    return report(problem, 2);
  auto parsed = parse_demo_options(cfg.remainder);
  if (!parsed)
    return report(parsed.error(), 2);
  auto story = *parsed;
  if (story.seed == 0)
    story.seed = std::random_device{}() % 1000000 + 1;
  auto opts = cfg.values();
  opts.device.count = story.devices;
  opts.device.memory_bytes = std::max<uint64_t>(2 * story.elements * sizeof(double), 1u << 20);
  bool elsewhere = !opts.node.join.empty() || std::getenv("RINGMASTER_COORDINATOR") != nullptr; // it has its own journal
  if (opts.journal.dir.empty() && !elsewhere)
    opts.journal.dir = journal_dir();
  if (opts.log.level == "info")
    opts.log.level = "warn"; // the story tells it
  caf::actor_system system{cfg};
  auto home = cluster::open(system, opts);
  if (!home)
    return report(home.error());
  client user{system, (*home)->coordinator()};
  bool remote = !(*home)->root();
  if (remote && !story.devices_given)
    if (auto info = user.devices(); info && info->devices_size() >= 2)
      story.devices = std::min(story.devices, static_cast<uint32_t>(info->devices_size()));
  if (auto there = user.devices(story.devices, std::chrono::seconds{10}); !there)
    return report(there.error());
  fmt::print("Ringmaster demo: {}, {} {}, seed {}\n\n", remote ? "a cluster of several processes" : "one process",
             story.devices, "simulated devices", story.seed);
  demo acts{user, story};
  auto problem = acts.act_one();
  if (!problem && story.kill)
    problem = acts.act_two();
  if (!problem && user.devices(story.devices, std::chrono::seconds{10}))
    problem = acts.compare_algorithms();
  if (!problem)
    problem = acts.last_lines();
  std::fflush(stdout);
  if (problem)
    return report(problem);
  if (!remote)
    fmt::print("\nThe whole log: ringmaster log {}   (--trace FILE for Perfetto)\n", opts.journal.dir);
  fmt::print("{}\n", acts.right ? "Every result was right." : "A result was WRONG.");
  return acts.right ? 0 : 1;
}

} // namespace ringmaster
