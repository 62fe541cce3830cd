// Every kind by every algorithm in every datatype with every reduction, once a run, on random plans against the plain
// serial meaning. Another run of plans: RINGMASTER_TEST_SEED=7. A failure prints its seed and plan.
#include "runtime/algorithms/registry.hpp"
#include "runtime/reduction/reduce_op_registry.hpp"
#include "runtime/schedule/collective.hpp"
#include "tests/support/references/element.hpp"
#include "tests/support/simulated_cluster.hpp"

#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

/// The larger byte pattern, which is associative and commutative in every datatype.
constexpr const char* user_op = "properties_test.larger_bytes";

void register_user_op() {
  static bool done = [] {
    user_reduce_op op;
    for (int type = 0; type < proto::DataType_ARRAYSIZE; ++type)
      if (proto::DataType_IsValid(type))
        op.datatypes.push_back(static_cast<proto::DataType>(type));
    op.apply = [](proto::DataType type, const std::byte* a, const std::byte* b, std::byte* out, uint64_t count) {
      auto size = size_of(type);
      for (uint64_t i = 0; i < count; ++i, a += size, b += size, out += size)
        std::memmove(out, std::memcmp(a, b, size) < 0 ? b : a, size);
    };
    return !register_reduce_op(user_op, std::move(op));
  }();
  REQUIRE(done);
}

/// Values whose reductions are exact in any order, so that one reference serves every algorithm: small whole numbers,
/// and for min and max whatever there is.
template <class T>
T random_value(std::mt19937_64& random, gpu_sim::ReduceOp op) {
  using wide = typename element<T>::wide;
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(random());
  else if (op == gpu_sim::MIN || op == gpu_sim::MAX || op == gpu_sim::USER)
    return random_values<T>(random, 1)[0];
  else
    return element<T>::encode(static_cast<wide>(op == gpu_sim::PROD ? 1 + random() % 2
                                                                    : random() % (sizeof(T) == 1 ? 2 : 3)));
}

struct case_plan {
  proto::CollectiveKind kind;
  std::string algorithm;
  gpu_sim::ReduceOp op;
  plan_request world;
  bool in_place = false;
};

template <class T>
class property_case {
public:
  property_case(simulated_cluster& host, std::mt19937_64& draw, proto::CollectiveKind kind, std::string_view algorithm,
                gpu_sim::ReduceOp op)
    : cluster(host), random(draw) {
    plan.kind = kind;
    plan.algorithm = algorithm;
    plan.op = op;
    auto& world = plan.world;
    world.world_size = 1 + static_cast<uint32_t>(random() % 8);
    if (kind == proto::SEND_RECV)
      world.world_size = std::max(world.world_size, 2u);
    constexpr uint64_t counts[] = {0, 1, 2, 3, 7, 8, 13, 31, 64};
    world.count = counts[random() % std::size(counts)];
    world.root = has_root(kind) ? static_cast<uint32_t>(random() % world.world_size) : 0;
    if (kind == proto::SEND_RECV)
      world.peer = (world.root + 1 + static_cast<uint32_t>(random() % (world.world_size - 1))) % world.world_size;
    world.chunk = random() % 3 == 0 ? 1 + random() % 5 : 0;
    plan.in_place = random() % 2 == 0 && kind != proto::SEND_RECV;
    if (has_v_variant(kind) && random() % 3 == 0)
      for (uint64_t i = 0; i < (kind == proto::ALL_TO_ALL ? uint64_t{world.world_size} : 1) * world.world_size; ++i)
        world.counts.push_back(random() % 9);
    if (plan.in_place && kind == proto::ALL_TO_ALL) // as many each way
      for (uint32_t a = 0; a < world.world_size && !world.counts.empty(); ++a)
        for (uint32_t b = 0; b < a; ++b)
          world.counts[a * world.world_size + b] = world.counts[b * world.world_size + a];
  }

  bool possible() const { return bool{find_algorithm(plan.kind, plan.algorithm, plan.world)}; }

  std::string text() const {
    return fmt::format("{} {} of {} {} over {} ranks, root {}, peer {}, count {}, counts [{}], chunk {}{}",
                       plan.algorithm, name_of(plan.kind), proto::DataType_Name(element<T>::type),
                       gpu_sim::ReduceOp_Name(plan.op), plan.world.world_size, plan.world.root, plan.world.peer,
                       plan.world.count, fmt::join(plan.world.counts, ", "), plan.world.chunk,
                       plan.in_place ? ", in place" : "");
  }

  /// What is wrong with the outcome; empty: nothing.
  std::string run() {
    auto& world = plan.world;
    auto comm = cluster.init(world.world_size);
    proto::CollectiveRequest request;
    request.set_comm_id(comm.commid());
    request.mutable_collective()->set_kind(plan.kind);
    request.mutable_collective()->set_algorithm(plan.algorithm);
    request.mutable_collective()->set_datatype(element<T>::type);
    request.mutable_collective()->set_op(plan.op);
    request.mutable_collective()->set_count(world.count);
    request.mutable_collective()->set_root(world.root);
    request.mutable_collective()->set_peer(world.peer);
    request.mutable_collective()->set_chunk_count(world.chunk);
    request.mutable_collective()->mutable_counts()->Add(world.counts.begin(), world.counts.end());
    if (plan.op == gpu_sim::USER)
      request.mutable_collective()->set_user_op(user_op);
    for (uint32_t rank = 0; rank < world.world_size; ++rank) {
      if (plan.op == gpu_sim::PREMUL_SUM)
        request.mutable_collective()->add_factors(static_cast<double>(factor(rank)));
      room = std::max({room, input_count(plan.kind, world, rank), output_count(plan.kind, world, rank)});
    }
    for (uint32_t rank = 0; rank < world.world_size; ++rank) {
      auto& device = comm.devices(static_cast<int>(rank));
      before.emplace_back();
      for (uint64_t i = 0; i < 2 * room + 3 * guard; ++i)
        before.back().push_back(random_value<T>(random, plan.op));
      cluster.copy_in(device.deviceid().value(), device.minmemaddr().value(), byte_block::of(before.back()));
      request.add_inputs(device.minmemaddr().value() + guard * sizeof(T));
      if (!plan.in_place)
        request.add_outputs(device.minmemaddr().value() + (2 * guard + room) * sizeof(T));
    }
    auto problem = cluster.ask_coordinator<proto::CollectiveResponse>(request).error();
    if (problem.empty())
      problem = cluster.wait(comm.commid()).error();
    for (uint32_t rank = 0; rank < world.world_size && problem.empty(); ++rank)
      problem = judge(rank, comm.devices(static_cast<int>(rank)));
    proto::CommDestroyRequest destroy;
    destroy.set_comm_id(comm.commid());
    cluster.ask_coordinator<proto::CommDestroyResponse>(destroy);
    return problem;
  }

private:
  static constexpr uint64_t guard = 5;

  static int factor(uint32_t rank) { return rank % 2 == 0 ? 1 : std::is_integral_v<T> ? 2 : -1; }

  T input(uint32_t rank, uint64_t index) const {
    auto offset = plan.in_place ? in_place(plan.kind, plan.world, rank).input : 0;
    return before[rank][guard + offset + index];
  }

  T expected(uint32_t rank, uint64_t index) const {
    auto from = meaning_of(plan.kind, plan.world, rank, index);
    if (!from.all_ranks)
      return input(from.rank, from.index);
    std::vector<T> values;
    for (uint32_t r = 0; r < plan.world.world_size; ++r)
      values.push_back(input(r, from.index));
    if (plan.op == gpu_sim::USER)
      return *std::max_element(values.begin(), values.end(),
                               [](auto& a, auto& b) { return std::memcmp(&a, &b, sizeof(T)) < 0; });
    using e = element<T>;
    if (plan.op == gpu_sim::PREMUL_SUM)
      for (uint32_t r = 0; r < values.size(); ++r)
        values[r] = e::encode(combined(gpu_sim::PROD, e::decode(values[r]), static_cast<typename e::wide>(factor(r))));
    if (values.size() == 1)
      return values[0];
    return chained<T>(plan.op, values, plan.op == gpu_sim::AVG ? plan.world.world_size : 0);
  }

  std::string judge(uint32_t rank, const gpu_sim::DeviceMetadata& device) {
    auto right = before[rank];
    auto start = plan.in_place ? guard + in_place(plan.kind, plan.world, rank).output : 2 * guard + room;
    auto outputs = output_count(plan.kind, plan.world, rank);
    for (uint64_t i = 0; i < outputs; ++i)
      right[start + i] = expected(rank, i);
    auto found = cluster.copy_out(device.deviceid().value(), device.minmemaddr().value(), right.size() * sizeof(T));
    for (uint64_t i = 0; i < right.size(); ++i)
      if (std::memcmp(found.data() + i * sizeof(T), &right[i], sizeof(T)) != 0)
        return fmt::format("rank {}: element {} of its region (output at {}, {} elements) is wrong", rank, i, start,
                           outputs);
    return {};
  }

  simulated_cluster& cluster;
  std::mt19937_64& random;
  case_plan plan;
  uint64_t room = 0;
  std::vector<std::vector<T>> before; ///< By rank: all of its region.
};

uint64_t first_seed() {
  auto text = std::getenv("RINGMASTER_TEST_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

template <class T>
void check_all() {
  register_user_op();
  constexpr gpu_sim::ReduceOp ops[] = {gpu_sim::SUM, gpu_sim::PROD,       gpu_sim::MIN, gpu_sim::MAX,
                                       gpu_sim::AVG, gpu_sim::PREMUL_SUM, gpu_sim::USER};
  uint64_t plans = 0;
  for (auto& x : algorithms()) {
    auto seed = first_seed() * 1000 + ++plans;
    simulated_cluster cluster{{.seed = seed, .devices = 8, .memory_bytes = 1u << 16, .offer_memory = seed % 4 != 0}};
    std::mt19937_64 random{seed};
    for (auto op : ops) {
      if (!reduces(x.kind) && op != gpu_sim::SUM)
        continue;
      constexpr int draws_max = 100; // some algorithms do not take every world
      auto one = std::make_unique<property_case<T>>(cluster, random, x.kind, x.name, op);
      for (int i = 0; i < draws_max && !one->possible(); ++i)
        one = std::make_unique<property_case<T>>(cluster, random, x.kind, x.name, op);
      CAPTURE(seed);
      CAPTURE(one->text());
      CHECK(one->run() == "");
    }
  }
  CHECK(plans >= 47);
}

} // namespace

TEST_CASE_TEMPLATE("properties: every kind, algorithm and reduction", T, RINGMASTER_ELEMENTS) {
  check_all<T>();
}
