// What a collective takes that ranks call for themselves, each a process, each call waited for: what mpi_bench.cpp
// measures of MPI. For caf-run --ranks N, or mpirun.
//   rank_bench BYTES CALLS [SAMPLES]   all_reduce, float32 sum, out of place; the results of one more call are checked
// Rank 0 prints a line of JSON: the median of the samples' times a call in microseconds, and elements that were wrong.
#include "actors/configuration/configuration.hpp"
#include "client/process_group.hpp"
#include "runtime/configuration/places.hpp"
#include "runtime/samples/sample_hash.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

using namespace ringmaster;
using namespace std::chrono_literals;

namespace {

struct measure {
  uint64_t bytes = 1024;
  uint64_t calls = 1000;
  uint64_t samples = 7;
};

constexpr uint64_t checked_salt = 1; ///< Of the data of the call that is checked.

/// Whole numbers, so that sums are exact in any order.
float value(uint64_t of_rank, uint64_t index, uint64_t salt) {
  return static_cast<float>(sample_whole_number(sample_hash(sample_seed(of_rank, salt), index), 1000));
}

caf::expected<uint64_t> wrong_in(client& host, rank_communicator& rank, uint64_t address, uint64_t count) {
  auto got = host.copy_to_host(id_of(rank.device()), address, count * sizeof(float));
  if (!got)
    return std::move(got.error());
  std::vector<float> right(count);
  for (uint32_t from = 0; from < rank.size(); ++from)
    for (uint64_t i = 0; i < count; ++i)
      right[i] += value(from, i, checked_salt);
  auto values = got->as<float>();
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < count; ++i)
    wrong += values[i] != right[i] ? 1 : 0;
  return wrong;
}

caf::error fill(client& host, rank_communicator& rank, uint64_t address, uint64_t count, uint64_t salt) {
  std::vector<float> mine(count);
  for (uint64_t i = 0; i < count; ++i)
    mine[i] = value(rank.rank(), i, salt);
  return host.copy_to_device(id_of(rank.device()), address, byte_block::of(std::move(mine)));
}

caf::error run(caf::actor_system& system, process_group& world, const measure& what) {
  using clock = std::chrono::steady_clock;
  client host{system, world.coordinator()};
  auto& rank = world.ranks().front();
  auto device = id_of(rank.device());
  auto count = what.bytes / sizeof(float);
  auto input = host.allocate(device, what.bytes), output = host.allocate(device, what.bytes);
  if (!input || !output)
    return input ? output.error() : input.error();
  if (auto problem = fill(host, rank, *input, count, 0))
    return problem;
  std::vector<double> times;
  for (uint64_t sample = 0; sample <= what.samples; ++sample) {
    auto began = clock::now();
    for (uint64_t i = 0; i < what.calls; ++i)
      if (auto problem = rank.all_reduce({*input, *output}, count, proto::FLOAT32).wait(10s))
        return problem;
    std::chrono::duration<double, std::micro> taken = clock::now() - began;
    if (sample > 0) // the first warms up
      times.push_back(taken.count() / static_cast<double>(what.calls));
  }
  if (auto problem = fill(host, rank, *input, count, checked_salt))
    return problem;
  if (auto problem = rank.all_reduce({*input, *output}, count, proto::FLOAT32).wait(10s))
    return problem;
  auto wrong = wrong_in(host, rank, *output, count);
  if (!wrong)
    return std::move(wrong.error());
  if (*wrong > 0)
    return make_error(errc::corrupt, fmt::format("rank {}: {} elements were wrong", rank.rank(), *wrong));
  std::sort(times.begin(), times.end());
  if (rank.rank() == 0)
    fmt::print("{{\"bytes\": {}, \"ranks\": {}, \"time\": {:.3f}, \"wrong\": 0}}\n", what.bytes, rank.size(),
               times[times.size() / 2]);
  return caf::none;
}

caf::error start(caf::actor_system& system, const options& opts, const measure& what) {
  auto world = process_group::init(system, opts, 2);
  if (!world)
    return std::move(world.error());
  if ((*world)->ranks().size() > 1)
    return make_error(errc::invalid_argument, "each rank is to be a process: start it by caf-run --ranks N");
  if (auto problem = run(system, **world, what))
    return problem;
  return (*world)->finalize();
}

} // namespace

int main(int argc, char** argv) {
  configuration cfg;
  caf::error problem = cfg.read(argc, argv, find_configuration());
  if (!problem) {
    measure what;
    uint64_t* given[] = {&what.bytes, &what.calls, &what.samples};
    for (size_t i = 0; i < std::min<size_t>(cfg.remainder.size(), 3); ++i)
      *given[i] = std::max<uint64_t>(std::strtoull(cfg.remainder[i].c_str(), nullptr, 10), i == 0 ? sizeof(float) : 1);
    auto opts = cfg.values();
    opts.log.level = "warn";
    caf::actor_system system{cfg};
    problem = start(system, opts, what);
  }
  if (problem)
    fmt::print(stderr, "rank_bench: {}\n", render(problem));
  return problem ? 1 : 0;
}
