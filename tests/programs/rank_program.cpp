// A program whose processes are ranks, for caf-run --ranks and mpirun.
//   rank_program sum       everybody adds up the ranks, and says what came
//   rank_program exit-3    the last rank ends with status 3 in the middle; the others go on
//   rank_program no-show   rank 1 never comes
//   rank_program early     rank 0 returns at once, without a word; the others work on without it
#include "actors/configuration/configuration.hpp"
#include "client/process_group.hpp"

#include <fmt/format.h>

#include <cstdlib>

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
  if (what == "early" || what == "exit-3") // until the one that is going is gone
    for (auto there = host.devices(); there && there->devices_size() == static_cast<int>((*world)->size());)
      there = host.devices();
  if (auto problem = add_up(**world, host))
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
