// Links ringmaster::ringmaster and nothing else: an algorithm of its own, proved; a training strategy of its own,
// simulated; and a cluster of its own. Prints a line for each and exits with 0 if all are right.
#include <ringmaster/ringmaster.hpp>

#include <cstdio>

using namespace ringmaster;

namespace {

/// A broadcast in which the root sends to one rank after the other.
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
  return {peers + 1, peers * request.count, peers, 1, peers * request.count};
}

void prove_algorithm() {
  register_algorithm({"roll_call", collective_kind::broadcast, "N blocks", plan_roll_call, cost_of_roll_call}).value();
  plan_request request{.world_size = 5, .count = 7};
  request.root = 2;
  const auto ranks = plan_all(collective_kind::broadcast, "roll_call", request).value();
  const auto found = prove(collective_kind::broadcast, request, ranks);
  std::printf("algorithm: %s\n", found.holds ? "proved" : found.fault.c_str());
  if (!found.holds)
    throw std::runtime_error{"the algorithm is wrong"};
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

void use_cluster(cluster& home) {
  const auto devices = home.devices(3, std::chrono::seconds{10}).value();
  std::printf("cluster: %zu devices\n", devices.size());
  register_reduce_op<int32_t>("saturating", [](int32_t a, int32_t b) { return a > 90 - b ? 90 : a + b; }).value();
  client host{home};
  auto communicator = host.make_communicator(3, {.deterministic = true, .name = "outsider"}).value();
  auto buffers = communicator.allocate<int32_t>(2).value();
  for (auto& each : buffers)
    each.write(std::vector<int32_t>{1, 40}).value();
  communicator.all_reduce<int32_t>(buffers, 2, reduction::user("saturating")).value();
  communicator.wait(std::chrono::seconds{10}).value();
  if (devices.size() != 3 || buffers[0].read<int32_t>().value() != std::vector<int32_t>{3, 90})
    throw std::runtime_error{"the cluster is wrong"};
}

} // namespace

int main(int argc, char** argv) {
  return run_main(argc, argv, [](cluster& home) {
    prove_algorithm();
    const auto step = simulate_step(late_sums, {.layers = 4, .global_batch = 16, .micro_batch = 4}, 4).value();
    std::printf("strategy: a step takes %.3f ms\n", 1e3 * step.time);
    use_cluster(home);
  });
}
