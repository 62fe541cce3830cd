// Communicators that share devices, whose ranks call for themselves in an order drawn from the seed, while devices die:
// all ranks are answered, and each operation belongs to one group. RINGMASTER_SEEDS says how many seeds are tried
// (300).
#include "tests/support/rank_cluster.hpp"

#include <cstdlib>
#include <fmt/format.h>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

constexpr uint32_t ranks = 5;
constexpr uint64_t operations = 10;

/// A communicator of some of the world's ranks, each with its handle.
struct part {
  std::vector<uint32_t> of_world; ///< By rank: which one of the world it is.
  std::vector<rank_communicator> handles;
};

struct planned_call {
  size_t part = 0;
  std::string algorithm;
};

class overlapping_trial {
public:
  explicit overlapping_trial(uint64_t seed) : x{options(seed), ranks}, random{seed} {
    for (uint32_t rank = 0; rank < ranks; ++rank)
      x.fill(rank, 0, {static_cast<float>(1 << rank)});
    add({0, 1, 2, 3, 4}, std::move(x.handles));
    derive({0, 0, 0, 0, 0});
    derive({0, 0, 0, 1, 1});
    derive({0, 1, 0, 1, 0});
    constexpr const char* names[] = {"ring", "direct", "tree", "butterfly", "naive", "auto"};
    for (uint64_t i = 0; i < operations; ++i)
      calls.push_back({random() % parts.size(), names[random() % std::size(names)]});
  }

  void run() {
    std::vector<uint64_t> next(ranks, 0);
    auto kills = random() % 3;
    for (bool left = true; left;) {
      left = false;
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        if (next[rank] < operations && random() % 2 == 0)
          call(rank, next[rank]++);
        left = left || next[rank] < operations;
      }
      if (kills > 0 && random() % 8 == 0) {
        --kills;
        kill(static_cast<uint32_t>(random() % ranks));
      }
      x.run_messages(random() % 40);
    }
    x.cluster.run_until([&] { return std::all_of(works.begin(), works.end(), [](auto& y) { return y.call.test(); }); });
  }

  /// What is wrong; empty: nothing.
  std::string judge() {
    for (auto& y : works)
      if (killed.count(y.rank) == 0 && y.call.error())
        return fmt::format("operation {}, rank {}: {}", y.operation, y.rank, render(y.call.error()));
    for (uint64_t i = 0; i < operations; ++i) {
      std::set<int> sums;
      int all = 0, living = 0;
      for (auto rank : parts[calls[i].part].of_world) {
        all |= 1 << rank;
        if (killed.count(rank) != 0)
          continue;
        living |= 1 << rank;
        sums.insert(static_cast<int>(x.read(rank, 8 + i, 1)[0]));
      }
      if (living == 0)
        continue;
      auto sum = *sums.begin();
      if (sums.size() != 1 || (sum & living) != living || (sum & all) != sum)
        return fmt::format("operation {}: the sum of ranks {:b} among {:b} is {:b}", i, living, all, sum);
    }
    return {};
  }

private:
  struct made_call {
    uint32_t rank = 0;
    uint64_t operation = 0;
    work call;
  };

  static simulation_options options(uint64_t seed) {
    simulation_options result;
    result.seed = seed;
    result.devices = ranks;
    result.offer_memory = seed % 3 != 0;
    return result;
  }

  void add(std::vector<uint32_t> of_world, std::vector<rank_communicator> handles) {
    parts.push_back({std::move(of_world), std::move(handles)});
  }

  void derive(const std::vector<int32_t>& colors) {
    proto::CommDeriveRequest request;
    request.set_comm_id(x.comm.commid());
    request.mutable_split()->mutable_colors()->Add(colors.begin(), colors.end());
    auto answer = x.cluster.ask_coordinator<proto::CommDeriveResponse>(request);
    for (auto& made : answer.parts()) {
      std::vector<uint32_t> of_world;
      for (uint32_t rank = 0; rank < ranks; ++rank)
        if (colors[rank] == made.color())
          of_world.push_back(rank);
      add(std::move(of_world), x.handles_of(made.comm()));
    }
  }

  void call(uint32_t rank, uint64_t operation) {
    auto& mine = parts[calls[operation].part];
    auto spot = std::find(mine.of_world.begin(), mine.of_world.end(), rank) - mine.of_world.begin();
    if (spot == static_cast<ptrdiff_t>(mine.of_world.size()))
      return; // not one of this communicator's
    works.push_back({rank, operation,
                     mine.handles[static_cast<size_t>(spot)].all_reduce(x.buffers(rank, 0, 8 + operation), 1,
                                                                        proto::FLOAT32, {},
                                                                        {.algorithm = calls[operation].algorithm})});
  }

  void kill(uint32_t rank) {
    if (killed.size() + 1 == ranks || !killed.insert(rank).second)
      return;
    proto::FaultRequest fault;
    fault.set_at_step(random() % 2 == 0);
    fault.set_step(static_cast<uint32_t>(random() % 3));
    x.cluster.inject(x.device(rank), fault);
  }

  rank_cluster x;
  std::mt19937_64 random;
  std::vector<part> parts;
  std::vector<planned_call> calls;
  std::vector<made_call> works;
  std::set<uint32_t> killed;
};

} // namespace

TEST_CASE("overlap: communicators that share devices, and lose them, end every call, each over one group") {
  auto wanted = std::getenv("RINGMASTER_SEEDS");
  auto seeds = wanted == nullptr ? 300 : std::strtoull(wanted, nullptr, 10);
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    overlapping_trial trial{seed};
    trial.run();
    CHECK(trial.judge() == "");
  }
}
