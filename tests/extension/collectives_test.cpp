// An algorithm and a datatype that the library does not have, added as an outside program would: through public
// headers, without a line of the library changed. Both go the whole way: plan, proof, simulation, and a cluster in this
// process.
#include "actors/configuration/configuration.hpp"
#include "client/client.hpp"
#include "client/cluster.hpp"
#include "messages/errc.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/proof/proof.hpp"
#include "runtime/rank_order/rank_order.hpp"
#include "runtime/reduction/datatypes.hpp"
#include "runtime/reduction/reduction_loops.hpp"
#include "runtime/schedule/collective.hpp"
#include "runtime/simulation/simulation.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace ringmaster;

namespace {

/// All-reduce: each rank sends its input to all others, and adds the inputs in the order of ranks, starting with its
/// own successor and around.
schedule plan_all_around(const plan_request& request) {
  const auto n = request.world_size, me = request.rank;
  const block_range input{buffer::input, 0, request.count}, output{buffer::output, 0, request.count};
  schedule_builder steps{request};
  for (uint32_t i = 1; i < n; ++i) {
    steps.send(i - 1, (me + i) % n, input);
    steps.recv_reduce(i - 1, (me + n - i) % n, i == 1 ? input : output, output, i + 1 == n);
  }
  return steps.take(n - 1);
}

algorithm_cost cost_of_all_around(const plan_request& request) {
  const uint64_t messages = request.world_size - 1;
  return {messages, messages * request.count, messages, messages, messages * request.count};
}

const algorithm all_around{.name = "all_around",
                           .kind = proto::ALL_REDUCE,
                           .formula = "N-1 rounds of the whole buffer",
                           .plan = plan_all_around,
                           .cost = cost_of_all_around};

/// Whole numbers of 16 bits.
const known_datatype int16_datatype{
  .value = static_cast<proto::DataType>(100),
  .name = "int16",
  .element_bytes = sizeof(int16_t),
  .least = INT16_MIN,
  .most = INT16_MAX,
  .store =
    [](double x, std::byte* to) {
      const bool fits = x >= INT16_MIN && x <= INT16_MAX;
      store(to, 0, fits ? static_cast<int16_t>(x) : int16_t{0});
      return fits && x == std::trunc(x);
    },
  .operation = [](gpu_sim::ReduceOp op, instruction_set set) { return compiled_operation<int16_t, uint16_t>(op, set); },
  .kernels = [](instruction_set set) { return compiled_datatype<int16_t, float>(set); }};

/// Once, before anything else looks at them.
const auto algorithm_refused = register_algorithm(all_around), datatype_refused = register_datatype(int16_datatype);

constexpr uint32_t ranks = 3;
constexpr uint64_t count = 1000;

int16_t element(uint32_t rank, uint64_t index) {
  return static_cast<int16_t>(static_cast<int>(index) - 300 + 17 * static_cast<int>(rank));
}

/// An all-reduce on a cluster of this process; what each rank has then. Errors: a sentence.
caf::expected<std::vector<std::vector<int16_t>>> reduced(gpu_sim::ReduceOp op, const std::string& algorithm,
                                                         double factor = 0) {
  configuration cfg;
  options opts;
  opts.device.count = ranks;
  opts.log.level = "warn";
  caf::actor_system system{cfg};
  auto home = cluster::open(system, opts);
  if (!home)
    return std::move(home.error());
  client user{system, (*home)->coordinator()};
  if (auto there = user.devices(ranks, std::chrono::seconds{20}); !there)
    return std::move(there.error());
  auto comm = user.comm_init(ranks);
  if (!comm)
    return std::move(comm.error());
  proto::CollectiveRequest request;
  request.set_comm_id(comm->commid());
  auto& what = *request.mutable_collective();
  what.set_algorithm(algorithm);
  what.set_datatype(int16_datatype.value);
  what.set_op(op);
  what.set_count(count);
  if (op == gpu_sim::PREMUL_SUM)
    what.add_factors(factor);
  std::vector<std::pair<device_id, uint64_t>> buffers;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const auto device = id_of(comm->devices(static_cast<int>(rank)));
    auto address = user.allocate(device, count * sizeof(int16_t));
    if (!address)
      return std::move(address.error());
    std::vector<int16_t> input(count);
    for (uint64_t i = 0; i < count; ++i)
      input[i] = element(rank, i);
    if (auto problem = user.copy_to_device(device, *address, byte_block::of(std::move(input))))
      return problem;
    request.add_inputs(*address);
    buffers.emplace_back(device, *address);
  }
  if (auto sequence = user.collective(request); !sequence)
    return std::move(sequence.error());
  auto status = user.wait(id_of(*comm), std::chrono::seconds{20});
  if (!status)
    return std::move(status.error());
  if (status->status() != gpu_sim::SUCCESS)
    return make_error(errc::aborted, status->error());
  std::vector<std::vector<int16_t>> result;
  for (auto [device, address] : buffers) {
    auto block = user.copy_to_host(device, address, count * sizeof(int16_t));
    if (!block)
      return std::move(block.error());
    const auto all = block->as<int16_t>();
    result.emplace_back(all.begin(), all.end());
  }
  return result;
}

/// `right` of an index, on every rank.
template <class Right>
void check_result(const caf::expected<std::vector<std::vector<int16_t>>>& found, Right right) {
  REQUIRE_MESSAGE(found.engaged(), render(found.error()));
  for (auto& rank : *found) {
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < count; ++i)
      wrong += rank[i] != right(i);
    CHECK(wrong == 0);
  }
}

int sum_of(uint64_t index) {
  int sum = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    sum += element(rank, index);
  return sum;
}

} // namespace

TEST_CASE("extension: an algorithm from outside is planned, proved and simulated") {
  REQUIRE_MESSAGE(!algorithm_refused, render(algorithm_refused));
  CHECK(find_algorithm(proto::ALL_REDUCE, "all_around").engaged());
  CHECK(!is_shared_memory(proto::ALL_REDUCE, "all_around"));
  for (uint32_t world_size : {1, 2, 3, 8}) {
    CAPTURE(world_size);
    const plan_request request{.world_size = world_size, .count = count};
    auto schedules = plan_all(proto::ALL_REDUCE, "all_around", request);
    REQUIRE_MESSAGE(schedules.engaged(), render(schedules.error()));
    CHECK_FALSE(prove(proto::ALL_REDUCE, request, *schedules).fault);
    auto ordered = plan_all_in_rank_order(proto::ALL_REDUCE, "all_around", request);
    REQUIRE_MESSAGE(ordered.engaged(), render(ordered.error()));
    CHECK_FALSE(prove(proto::ALL_REDUCE, request, *ordered, 1, addition_order::ranks).fault);
    network net;
    net.link = {.latency = 1'000'000, .bandwidth = 1e9}; // 1 us; a byte a nanosecond
    auto found = simulate(*schedules, net, sizeof(double));
    REQUIRE_MESSAGE(found.engaged(), render(found.error()));
    CHECK(found->stuck == "");
    CHECK(found->time == (world_size - 1) * (1'000'000 + picoseconds{8'000'000})); // as its cost says
  }
}

TEST_CASE("extension: an algorithm from outside runs on a cluster, on a datatype from outside") {
  REQUIRE_MESSAGE(!algorithm_refused, render(algorithm_refused));
  REQUIRE_MESSAGE(!datatype_refused, render(datatype_refused));
  check_result(reduced(gpu_sim::SUM, "all_around"), sum_of);
}

TEST_CASE("extension: a datatype from outside has a name, a size and every reduction") {
  REQUIRE_MESSAGE(!datatype_refused, render(datatype_refused));
  CHECK(*parse_datatype("int16") == int16_datatype.value);
  CHECK(name_of(int16_datatype.value) == "int16");
  CHECK(size_of(int16_datatype.value) == 2);
  CHECK(!order_matters(proto::ALL_REDUCE, int16_datatype.value, gpu_sim::SUM));
  CHECK(render(check_factor(int16_datatype.value, 40'000)).find("of int16 it must be whole and from -32768 to 32767")
        != std::string::npos);
  for (std::string algorithm : {"auto", "ring"}) { // served together, and walked
    CAPTURE(algorithm);
    check_result(reduced(gpu_sim::AVG, algorithm), [](uint64_t i) { return sum_of(i) / static_cast<int>(ranks); });
    check_result(reduced(gpu_sim::PREMUL_SUM, algorithm, -2), [](uint64_t i) { return -2 * sum_of(i); });
    check_result(reduced(gpu_sim::MAX, algorithm), [](uint64_t i) { return element(ranks - 1, i); });
  }
}

TEST_CASE("extension: what is there already, or incomplete, is not registered") {
  auto refusal = [](auto x) { return render(register_datatype(x)); };
  auto other = int16_datatype;
  CHECK(refusal(other).find("there is int16, of number 100") != std::string::npos);
  other.value = static_cast<proto::DataType>(101);
  other.name = "float32";
  CHECK(refusal(other).find("there is float32, of number 1") != std::string::npos);
  other.name = "int128";
  other.element_bytes = 16;
  CHECK(refusal(other).find("an element has 1, 2, 4 or 8 bytes, not 16") != std::string::npos);
  other.element_bytes = 3;
  CHECK(refusal(other).find("an element has 1, 2, 4 or 8 bytes, not 3") != std::string::npos);
  other.element_bytes = 8;
  other.value = static_cast<proto::DataType>(256);
  CHECK(refusal(other).find("its number is 256, not 0 to 255") != std::string::npos);
  other.value = static_cast<proto::DataType>(101);
  other.element_bytes = 8;
  other.store = nullptr;
  CHECK(refusal(other).find("it needs functions") != std::string::npos);
  CHECK(render(register_algorithm(all_around)).find("there is one of that name") != std::string::npos);
}
