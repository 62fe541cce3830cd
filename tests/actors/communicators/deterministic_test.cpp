// Deterministic mode on real memory: a reduction's bits are those of a plain loop over the ranks, whatever the
// algorithm, the route of the bytes and the ranks that die.
#include "actors/configuration/settings.hpp"
#include "runtime/algorithms/registry.hpp"
#include "tests/support/references/rank_order_reference.hpp"
#include "tests/support/simulated_client.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

struct reduction_options {
  const algorithm* which = nullptr;
  uint32_t ranks = 4;
  uint64_t count = 13;
  gpu_sim::ReduceOp op = gpu_sim::SUM;
  bool in_place = false;
  uint64_t chunk = 0;
};

std::string text_of(const reduction_options& x) {
  return fmt::format("{} {}, {} ranks, count {}, {}{}, chunk {}", name_of(x.which->kind), x.which->name, x.ranks,
                     x.count, name_of(x.op), x.in_place ? ", in place" : "", x.chunk);
}

simulation_options how(uint64_t seed, uint32_t devices) {
  simulation_options result;
  result.seed = seed;
  result.devices = devices;
  result.offer_memory = seed % 2 == 0; // else bytes go in messages
  result.share_memory = seed % 4 < 2;  // else `direct` walks its schedule
  return result;
}

/// One reduction over a deterministic communicator, on values at which arithmetic goes wrong.
template <class T>
class reduction_trial {
public:
  reduction_trial(simulated_cluster& host, const reduction_options& what, uint64_t seed)
    : cluster(host), options(what),
      world_(world_of(what.ranks, what.which->kind == proto::REDUCE ? what.ranks - 1 : 0)) {
    gpu_sim::CommInitRequest request;
    request.set_numdevices(what.ranks);
    request.set_defaultpolicy(true);
    request.set_deterministic(true);
    comm = cluster.ask_coordinator<gpu_sim::CommInitResponse>(request);
    REQUIRE(comm.error() == "");
    std::mt19937_64 random{seed};
    for (uint32_t rank = 0; rank < what.ranks; ++rank) {
      inputs_.push_back(random_values<T>(random, input_count(what.which->kind, world_, rank)));
      auto bytes = std::as_bytes(std::span{inputs_.back()});
      if (!bytes.empty())
        cluster.copy_in(device(rank), base(rank), byte_block::of(std::vector<std::byte>(bytes.begin(), bytes.end())));
    }
  }

  gpu_sim::GetCommStatusResponse run() {
    proto::CollectiveRequest x;
    x.set_comm_id(comm.commid());
    x.mutable_collective()->set_kind(options.which->kind);
    x.mutable_collective()->set_algorithm(std::string{options.which->name});
    x.mutable_collective()->set_datatype(element<T>::type);
    x.mutable_collective()->set_op(options.op);
    x.mutable_collective()->set_count(options.count);
    x.mutable_collective()->set_root(world_.root);
    x.mutable_collective()->set_chunk_count(options.chunk);
    if (options.op == gpu_sim::USER)
      x.mutable_collective()->set_user_op(subtract_in_rank_order);
    for (uint32_t rank = 0; rank < options.ranks; ++rank) {
      x.add_inputs(base(rank));
      if (!options.in_place)
        x.add_outputs(base(rank) + output_offset);
      if (options.op == gpu_sim::PREMUL_SUM)
        x.mutable_collective()->add_factors(premul_factor(rank));
    }
    REQUIRE(cluster.ask_coordinator<proto::CollectiveResponse>(std::move(x)).error() == "");
    return cluster.wait(comm.commid());
  }

  /// The output of `rank`, the `place`-th of the ranks `group` that are left, has the bits of the plain loop over them.
  void check(const std::vector<uint32_t>& group, uint32_t place) {
    auto world = world_of(static_cast<uint32_t>(group.size()), world_.root);
    if (options.which->kind == proto::REDUCE)
      world.root = static_cast<uint32_t>(std::find(group.begin(), group.end(), world_.root) - group.begin());
    const auto count = output_count(options.which->kind, world, place);
    if (count == 0)
      return;
    const auto offset = options.in_place ? in_place(options.which->kind, world, place).output * sizeof(T)
                                         : output_offset;
    auto found = cluster.copy_out(device(group[place]), base(group[place]) + offset, count * sizeof(T));
    for (uint64_t i = 0; i < count; ++i) {
      std::vector<T> column;
      for (auto rank : group)
        column.push_back(inputs_[rank][meaning_of(options.which->kind, world, place, i).index]);
      const auto right = in_order(group, std::move(column));
      CAPTURE(group[place]);
      CAPTURE(i);
      CHECK(std::memcmp(found.data() + i * sizeof(T), &right, sizeof(T)) == 0);
    }
  }

  uint64_t device(uint32_t rank) const { return comm.devices(static_cast<int>(rank)).deviceid().value(); }

  simulated_cluster& cluster;
  reduction_options options;
  gpu_sim::CommInitResponse comm;

private:
  static constexpr uint64_t output_offset = 8192;

  plan_request world_of(uint32_t ranks, uint32_t root) const {
    return {.world_size = ranks, .count = options.count, .root = root, .chunk = options.chunk};
  }

  /// A factor goes with its rank.
  T in_order(const std::vector<uint32_t>& group, std::vector<T> column) const {
    if (options.op != gpu_sim::PREMUL_SUM)
      return added_in_rank_order(options.op, std::move(column));
    for (size_t i = 0; i < group.size(); ++i)
      column[i] = reference(gpu_sim::PROD, column[i],
                            element<T>::encode(static_cast<typename element<T>::wide>(premul_factor(group[i]))));
    return group.size() == 1 ? column[0] : chained(gpu_sim::PREMUL_SUM, column, 0);
  }

  uint64_t base(uint32_t rank) const { return comm.devices(static_cast<int>(rank)).minmemaddr().value(); }

  plan_request world_;
  std::vector<std::vector<T>> inputs_;
};

std::vector<uint32_t> all_of(uint32_t ranks) {
  std::vector<uint32_t> result;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    result.push_back(rank);
  return result;
}

template <class T>
void run_and_check(const reduction_options& what, uint64_t seed) {
  CAPTURE(text_of(what));
  CAPTURE(name_of(element<T>::type));
  CAPTURE(seed);
  simulated_cluster cluster{how(seed, what.ranks)};
  reduction_trial<T> x{cluster, what, seed};
  auto status = x.run();
  CHECK(status.error() == "");
  for (uint32_t rank = 0; rank < what.ranks; ++rank)
    x.check(all_of(what.ranks), rank);
}

template <class F>
void for_each_reducing_algorithm(F&& f) {
  for (const auto& x : algorithms())
    if (reduces(x.kind))
      f(x);
}

} // namespace

TEST_CASE("deterministic: every algorithm has the bits of a plain loop over the ranks, by memory and by messages") {
  register_subtract_in_rank_order();
  constexpr gpu_sim::ReduceOp ops[] = {gpu_sim::SUM,  gpu_sim::AVG, gpu_sim::PREMUL_SUM,
                                       gpu_sim::USER, gpu_sim::MIN, gpu_sim::PROD};
  uint64_t seed = 0;
  for_each_reducing_algorithm([&](const algorithm& which) {
    for (uint32_t ranks : {1, 2, 3, 5, 8})
      for (bool in_place : {false, true})
        for (auto op : {ops[seed % 6], ops[(seed + 1) % 6]}) {
          reduction_options what{&which, ranks, 13 + seed % 5, op, in_place, seed % 3 * 2};
          ++seed;
          for (auto s : {2 * seed, 2 * seed + 1})
            switch ((seed / 2 + s) % 4) {
              case 0: run_and_check<float>(what, s); break;
              case 1: run_and_check<half>(what, s); break;
              case 2: run_and_check<brain>(what, s); break;
              default: run_and_check<e4m3>(what, s);
            }
        }
  });
}

TEST_CASE("deterministic: when any rank dies at any step, the survivors have the bits of a loop over the survivors") {
  uint64_t seed = 0;
  for_each_reducing_algorithm([&](const algorithm& which) {
    for (auto op : {gpu_sim::AVG, gpu_sim::PREMUL_SUM}) {
      reduction_options what{&which, 4, 9, op, seed % 2 == 0, 2};
      auto rounds = plan(which.kind, which.name, {.world_size = 4, .count = 9, .root = 3, .chunk = 2})->rounds;
      for (uint32_t victim : {0, 2})
        for (uint32_t step = 0; step <= rounds; ++step) {
          ++seed;
          CAPTURE(text_of(what));
          CAPTURE(victim);
          CAPTURE(step);
          CAPTURE(seed);
          auto settings = how(seed, 4);
          settings.share_memory = false; // else some are decided before anybody can die
          simulated_cluster cluster{settings};
          reduction_trial<brain> x{cluster, what, seed};
          proto::FaultRequest fault;
          fault.set_at_step(true);
          fault.set_step(step);
          cluster.inject(x.device(victim), fault);
          auto status = x.run();
          CHECK(status.error() == "");
          auto group = all_of(4);
          group.erase(group.begin() + victim);
          REQUIRE(status.devices_size() == 3);
          for (uint32_t place = 0; place < 3; ++place)
            x.check(group, place);
        }
    }
  });
}

TEST_CASE("deterministic: contributions that do not fit the scratch area say so, and which algorithm takes less") {
  const auto* ring = *find_algorithm(proto::ALL_REDUCE, "ring");
  auto settings = how(1, 8);
  settings.memory_bytes = 32768;
  simulated_cluster cluster{settings};
  reduction_options what{ring, 8, 2000, gpu_sim::SUM, true};
  reduction_trial<float> x{cluster, what, 1};
  auto status = x.run();
  CHECK(status.status() == gpu_sim::FAILED);
  CAPTURE(status.error());
  CHECK(contains(status.error(), "all_reduce of float32 in rank order by ring takes 29000 bytes of scratch on rank"));
  CHECK(contains(status.error(), "by direct 8000: take that"));
}

TEST_CASE("deterministic: a communicator is as the cluster is configured where its call does not say") {
  options opts;
  CHECK(!coordinator_settings(opts).communicators.deterministic);
  opts.communicator.deterministic = true;
  CHECK(coordinator_settings(opts).communicators.deterministic);
}
