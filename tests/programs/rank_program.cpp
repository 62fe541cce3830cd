// A program whose processes are ranks, for caf-run --ranks and mpirun.
//   rank_program sum       all ranks add up their numbers and print the result
//   rank_program exit-3    the last rank ends with status 3 in the middle; the others go on
//   rank_program no-show   rank 1 never comes
//   rank_program many      many sums, over all ranks and over halves; prints how many used the mailbox
//   rank_program dies      the same, while the last rank is killed in the middle; the others go on without it
//   rank_program pauses    the same as many, while the last rank's process is stopped for a second in the middle
//   rank_program cut       sums of new numbers each time, until rank 0 truncates the mailbox
//   rank_program leaves    the last rank exits with status 0 without finalize; the others go on
//   rank_program early     rank 0 returns at once without finalize; the others work on without it
//   rank_program unwaited  each rank starts 30,000 sums without waiting, the last rank a second after the others
#include "actors/configuration/configuration.hpp"
#include "client/process_group.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <unistd.h>
#include <vector>

using namespace ringmaster;
using namespace std::chrono_literals;

namespace {

/// The sum of all ranks' numbers.
caf::error add_up(process_group& world, client& host) {
  auto& rank = world.ranks().front();
  auto device = id_of(rank.device());
  auto memory = host.allocate(device, sizeof(float));
  if (!memory)
    return memory.error();
  auto number = static_cast<float>(rank.rank() + 1);
  if (auto problem = host.copy_to_device(device, *memory, byte_block::of(std::vector{number})))
    return problem;
  if (auto problem = rank.all_reduce(rank_buffers::at(*memory), 1, proto::FLOAT32).wait(10s))
    return problem;
  auto sum = host.copy_to_host(device, *memory, sizeof(float));
  if (!sum)
    return sum.error();
  fmt::print("{} of {}: the sum is {}\n", number, world.size(), sum->as<float>()[0]);
  return caf::none;
}

/// A rank's buffer, and what it holds.
struct number_on_device {
  client& host;
  rank_communicator& rank;
  uint64_t address = 0;

  caf::error allocate() {
    auto got = host.allocate(id_of(rank.device()), sizeof(float));
    if (got)
      address = *got;
    return got ? caf::error{} : std::move(got.error());
  }
  caf::error set(float x) { return host.copy_to_device(id_of(rank.device()), address, byte_block::of(std::vector{x})); }
  caf::expected<float> get() {
    auto got = host.copy_to_host(id_of(rank.device()), address, sizeof(float));
    if (!got)
      return std::move(got.error());
    return got->as<float>()[0];
  }
};

/// The sum over all ranks, 8 times over: each call reads what the one before has written. Then it must be so much.
/// Then the handle is of the epoch that the calls ended in.
caf::error add_up_often(number_on_device& number, rank_communicator& over) {
  constexpr int times = 8;
  float right = 0;
  for (uint32_t rank = 0; rank < over.size(); ++rank)
    right += static_cast<float>(rank + 1);
  if (auto problem = number.set(static_cast<float>(over.rank() + 1)))
    return problem;
  work latest;
  for (int i = 0; i < times; ++i) {
    latest = over.all_reduce(rank_buffers::at(number.address), 1, proto::FLOAT32, {gpu_sim::AVG});
    if (i % 3 == 0) // the others are called without waiting
      if (auto problem = latest.wait(10s))
        return problem;
  }
  if (auto problem = latest.wait(10s))
    return problem;
  auto got = number.get();
  if (!got)
    return std::move(got.error());
  if (latest.epoch() != over.epoch()) // the same on all ranks that are left
    return over.update();
  if (*got != right / static_cast<float>(over.size()))
    return make_error(errc::corrupt, fmt::format("rank {} has {}, not {}", over.rank(), *got,
                                                 right / static_cast<float>(over.size())));
  return caf::none;
}

/// Stops this process, until its child lets it go on.
void stand_still_for_a_second() {
  if (::fork() == 0) {
    timespec second{1, 0};
    ::nanosleep(&second, nullptr);
    ::kill(::getppid(), SIGCONT);
    ::_exit(0);
  }
  ::raise(SIGSTOP);
}

/// Until the last rank is lost, or for this number of rounds.
caf::error add_up_for(process_group& world, client& host, int rounds, const std::string& what) {
  const bool one_dies = what == "dies";
  auto& rank = world.ranks().front();
  auto size = world.size();
  number_on_device number{host, rank};
  if (auto problem = number.allocate())
    return problem;
  auto half = rank.split(static_cast<int32_t>(rank.rank() % 2));
  if (!half)
    return std::move(half.error());
  for (int i = 0; i < rounds; ++i) {
    if (i == rounds / 2 && rank.rank() + 1 == size) {
      if (one_dies)
        ::raise(SIGKILL);
      if (what == "pauses")
        stand_still_for_a_second();
    }
    if (auto problem = add_up_often(number, rank))
      return problem;
    if (!one_dies)
      if (auto problem = add_up_often(number, **half))
        return problem;
  }
  fmt::print("rank {}: {} of {} ranks, {}\n", rank.rank(), rank.size(), size,
             rank.calls_met() > 0 ? "met in memory" : "by messages");
  return caf::none;
}

/// Sums of new numbers each time, which distinguish the calls; in the middle rank 0 truncates the mailbox. Every sum
/// that was reported as success must be right.
caf::error add_up_until_cut(process_group& world, client& host) {
  constexpr uint64_t calls = 4000, cut_at = 2000;
  auto& rank = world.ranks().front();
  auto device = id_of(rank.device());
  proto::MeetingRequest where;
  where.set_comm_id(rank.id().value);
  where.set_epoch(rank.epoch().value);
  where.set_world_size(rank.size());
  auto page = host.ask_within<proto::MeetingResponse>(10s, std::move(where));
  auto memory = page ? host.allocate(device, calls * sizeof(float)) : page.error();
  if (!memory)
    return std::move(memory.error());
  auto input = [](uint32_t of, uint64_t call) { return static_cast<float>(call * 10 + of + 1); };
  std::vector<float> inputs(calls);
  for (uint64_t i = 0; i < calls; ++i)
    inputs[i] = input(rank.rank(), i);
  if (auto problem = host.copy_to_device(device, *memory, byte_block::of(inputs)))
    return problem;
  uint64_t done = 0;
  caf::error why;
  for (; done < calls && !why; ++done) {
    if (done == cut_at && rank.rank() == 0)
      std::filesystem::resize_file(page->file(), 0);
    why = rank.all_reduce(rank_buffers::at(*memory + done * sizeof(float)), 1, proto::FLOAT32).wait(30s);
  }
  if (!why)
    return make_error(errc::corrupt, "the mailbox was truncated, and no rank has noticed");
  auto sums = host.copy_to_host(device, *memory, calls * sizeof(float));
  if (!sums)
    return std::move(sums.error());
  for (uint64_t i = 0; i + 1 < done; ++i) {
    float right = 0;
    for (uint32_t of = 0; of < rank.size(); ++of)
      right += input(of, i);
    if (sums->as<float>()[i] != right)
      return make_error(errc::corrupt,
                        fmt::format("call {} has ended well with {}, not {}", i, sums->as<float>()[i], right));
  }
  fmt::print("rank {}: all sums are right until {}\n", rank.rank(), render(why));
  return caf::none;
}

/// Starts all sums before it waits for any, and checks each of them. The last rank starts a second late.
caf::error add_up_unwaited(process_group& world, client& host) {
  constexpr uint64_t calls = 30'000;
  auto& rank = world.ranks().front();
  const auto device = id_of(rank.device());
  const auto bytes = calls * sizeof(float);
  auto inputs = host.allocate(device, bytes), outputs = host.allocate(device, bytes);
  if (!inputs || !outputs)
    return inputs ? std::move(outputs.error()) : std::move(inputs.error());
  auto input = [](uint32_t of, uint64_t call) { return static_cast<float>(call % 1000 * 10 + of + 1); };
  std::vector<float> values(calls);
  for (uint64_t i = 0; i < calls; ++i)
    values[i] = input(rank.rank(), i);
  if (auto problem = host.copy_to_device(device, *inputs, byte_block::of(values)))
    return problem;
  if (auto problem = rank.barrier().wait(30s))
    return problem;
  if (rank.rank() + 1 == rank.size()) {
    const timespec second{1, 0};
    ::nanosleep(&second, nullptr);
  }
  std::vector<work> all;
  for (uint64_t i = 0; i < calls; ++i)
    all.push_back(rank.all_reduce({*inputs + i * sizeof(float), *outputs + i * sizeof(float)}, 1, proto::FLOAT32));
  if (auto problem = work{all}.wait(120s))
    return problem;
  auto sums = host.copy_to_host(device, *outputs, bytes);
  if (!sums)
    return std::move(sums.error());
  for (uint64_t i = 0; i < calls; ++i) {
    float right = 0;
    for (uint32_t of = 0; of < rank.size(); ++of)
      right += input(of, i);
    if (sums->as<float>()[i] != right)
      return make_error(errc::corrupt, fmt::format("sum {} is {}, not {}", i, sums->as<float>()[i], right));
  }
  fmt::print("rank {} of {}: {} sums are right, in epoch {}\n", rank.rank(), rank.size(), calls, all.back().epoch());
  return caf::none;
}

caf::error run(caf::actor_system& system, const options& opts, const std::string& what) {
  auto rank = process_environment()("RINGMASTER_RANK");
  if (what == "no-show" && rank == "1")
    return caf::none;
  auto world = process_group::init(system, opts, 1);
  if (!world)
    return world.error();
  client host{system, (*world)->coordinator()};
  if (what == "early" && (*world)->plays(0))
    return caf::none;
  if (what == "exit-3" && (*world)->plays((*world)->size() - 1)) {
    std::fputs("it had enough\n", stderr);
    std::_Exit(3);
  }
  if (what == "leaves" && (*world)->plays((*world)->size() - 1))
    std::_Exit(0);
  if (what == "early" || what == "exit-3" || what == "leaves") // until the one that is going is gone
    for (auto there = host.devices(); there && there->devices_size() == static_cast<int>((*world)->size());)
      there = host.devices();
  if (what == "cut")
    return add_up_until_cut(**world, host);
  if (what == "unwaited") {
    if (auto problem = add_up_unwaited(**world, host))
      return problem;
    return (*world)->finalize();
  }
  bool often = what == "many" || what == "dies" || what == "pauses";
  if (auto problem = often ? add_up_for(**world, host, 50, what) : add_up(**world, host))
    return problem;
  return (*world)->finalize();
}

} // namespace

int main(int argc, char** argv) {
  configuration cfg;
  caf::error problem = cfg.read(argc, argv, std::nullopt);
  if (!problem) {
    caf::actor_system system{cfg};
    problem = run(system, cfg.values(), cfg.remainder.empty() ? "sum" : cfg.remainder.front());
  }
  if (problem)
    fmt::print(stderr, "rank_program: {}\n", render(problem));
  return problem ? 1 : 0;
}
