// Links ringmaster::client and nothing else: an algorithm of its own, proved; a training strategy of its own,
// simulated; and a cluster of its own. Prints a line for each and ends with 0 if all are right.
#include "actors/configuration/configuration.hpp"
#include "client/client.hpp"
#include "client/cluster.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/proof/proof.hpp"
#include "runtime/schedule/collective.hpp"
#include "training/simulated/simulator.hpp"
#include "training/strategies/strategies.hpp"

#include <fmt/format.h>

using namespace ringmaster;

namespace {

/// A broadcast in which the root tells one after the other.
schedule plan_roll_call(const plan_request& request) {
  schedule_builder steps{request};
  const block_range input{buffer::input, 0, request.count}, output{buffer::output, 0, request.count};
  if (request.rank != request.root)
    steps.recv(request.rank, request.root, output);
  for (uint32_t peer = 0; request.rank == request.root && peer < request.world_size; ++peer)
    if (peer == request.rank)
      steps.copy(peer, input, output);
    else
      steps.send(peer, peer, input);
  return steps.take(request.world_size);
}

algorithm_cost cost_of_roll_call(const plan_request& request) {
  const uint64_t peers = request.world_size - 1;
  return {.rounds = peers + 1,
          .elements = peers * request.count,
          .messages = peers,
          .latencies = 1,
          .serial_elements = peers * request.count};
}

bool algorithm_holds() {
  if (register_algorithm({"roll_call", proto::BROADCAST, "N blocks", plan_roll_call, cost_of_roll_call}))
    return false;
  plan_request request{.world_size = 5, .count = 7};
  request.root = 2;
  auto ranks = plan_all(proto::BROADCAST, "roll_call", request);
  const auto fault = ranks ? prove(proto::BROADCAST, request, *ranks).fault : ranks.error();
  fmt::print("algorithm: {}\n", fault ? render(fault) : "proved");
  return !fault;
}

/// Data parallel that keeps all gradients to the end.
training::strategy late_sums(training::rank& self, const training::model& m) {
  std::vector<training::weight> weights(m.layers);
  std::vector<training::optimizer_state> states(m.layers);
  std::vector<training::weight_gradient> gradients(m.layers);
  std::vector<training::activation> inputs(m.layers + 1);
  for (uint32_t l = 0; l < m.layers; ++l)
    std::tie(weights[l], states[l]) = co_await self.load_weights(l);
  inputs[0] = co_await self.input(training::samples_of(m, self.index(), self.world_size()));
  for (uint32_t l = 0; l < m.layers; ++l)
    inputs[l + 1] = co_await self.forward(inputs[l], weights[l]);
  auto by_output = co_await self.loss(inputs[m.layers]);
  for (uint32_t l = m.layers; l-- > 0;)
    std::tie(gradients[l], by_output) = co_await self.backward(inputs[l], weights[l], by_output);
  for (uint32_t l = 0; l < m.layers; ++l) {
    auto sum = co_await self.all_reduce(std::move(gradients[l]));
    co_await self.update(weights[l], states[l], std::move(sum));
    co_await self.finish(std::move(weights[l]));
  }
}

bool strategy_holds() {
  const training::model trained{.layers = 4, .global_batch = 16, .micro_batch = 4};
  auto found = training::simulate([&](training::rank& self) { return late_sums(self, trained); }, trained, 4,
                                  training::lab_costs());
  fmt::print("strategy: {}\n",
             found ? fmt::format("a step takes {:.3f} ms", 1e3 * found->time) : render(found.error()));
  return static_cast<bool>(found);
}

bool cluster_starts(int argc, char** argv) {
  configuration cfg;
  if (auto problem = cfg.read(argc, argv, std::nullopt)) {
    fmt::print("cluster: {}\n", render(problem));
    return false;
  }
  auto opts = cfg.values();
  opts.log.level = "warn";
  caf::actor_system system{cfg};
  auto home = cluster::open(system, opts);
  if (!home) {
    fmt::print("cluster: {}\n", render(home.error()));
    return false;
  }
  client host{system, (*home)->coordinator()};
  auto info = host.devices(3, std::chrono::seconds{10});
  fmt::print("cluster: {}\n", info ? fmt::format("{} devices", info->devices_size()) : render(info.error()));
  return info && info->devices_size() == 3;
}

} // namespace

int main(int argc, char** argv) {
  return algorithm_holds() && strategy_holds() && cluster_starts(argc, argv) ? 0 : 1;
}
