#include "tests/support/trials/all_reduce_trial.hpp"

#include "runtime/algorithms/registry.hpp"
#include "runtime/operations/waiting_ranks.hpp"
#include "runtime/reduction/reducer.hpp"
#include "runtime/reduction/reduction.hpp"
#include "tests/support/schedule_interpreter.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>
#include <numeric>

namespace ringmaster::test {

namespace {

constexpr std::byte guard{0xa5};

/// Numbers of no special form: their sums depend on the order.
std::vector<std::byte> random_values(proto::DataType type, uint64_t count, std::mt19937_64& random) {
  std::vector<std::byte> result(count * size_of(type));
  for (uint64_t i = 0; i < count; ++i) {
    auto at = result.data() + i * size_of(type);
    auto real = static_cast<double>(static_cast<int64_t>(random() % 2000000) - 1000000) / 7.0;
    auto store = [&](auto x) { std::memcpy(at, &x, sizeof(x)); };
    switch (type) {
      case proto::FLOAT64: store(real); break;
      case proto::FLOAT32: store(static_cast<float>(real)); break;
      case proto::INT32: store(static_cast<int32_t>(random())); break;
      default: store(static_cast<int64_t>(random())); break;
    }
  }
  return result;
}

} // namespace

all_reduce_trial::all_reduce_trial(simulated_host& host, const trial_options& opts)
  : cluster(host), options(opts), bytes(opts.count * size_of(opts.datatype)) {
  comm = cluster.init(opts.ranks);
  REQUIRE(comm.error() == "");
  for (uint32_t rank = 0; rank < opts.ranks; ++rank) {
    inputs.push_back(random_values(opts.datatype, opts.count, cluster.random));
    std::vector<std::byte> region(region_bytes(), guard);
    std::copy(inputs[rank].begin(), inputs[rank].end(), region.begin() + guard_bytes);
    cluster.copy_in(device(rank), base(rank), byte_block::of(std::move(region)));
  }
}

uint64_t all_reduce_trial::output_address(uint32_t rank) const {
  return options.in_place ? input_address(rank) : input_address(rank) + bytes + guard_bytes;
}

std::vector<uint32_t> all_reduce_trial::ranks_but(const std::vector<uint32_t>& lost) const {
  std::vector<uint32_t> result;
  for (uint32_t rank = 0; rank < options.ranks; ++rank)
    if (std::find(lost.begin(), lost.end(), rank) == lost.end())
      result.push_back(rank);
  return result;
}

std::string all_reduce_trial::launch() {
  proto::CollectiveRequest request;
  request.set_comm_id(comm.commid());
  request.mutable_collective()->set_kind(proto::ALL_REDUCE);
  request.mutable_collective()->set_algorithm(options.algorithm);
  request.mutable_collective()->set_datatype(options.datatype);
  request.mutable_collective()->set_op(options.op);
  request.mutable_collective()->set_count(options.count);
  for (uint32_t rank = 0; rank < options.ranks; ++rank) {
    request.add_inputs(input_address(rank));
    if (!options.in_place)
      request.add_outputs(output_address(rank));
  }
  return cluster.ask_coordinator<proto::CollectiveResponse>(std::move(request)).error();
}

std::vector<uint32_t> all_reduce_trial::hosts_of(const std::vector<uint32_t>& contributors) const {
  const auto devices_a_host = cluster.devices_a_host();
  std::vector<uint32_t> result;
  for (size_t i = 0; i < contributors.size() && devices_a_host != 0; ++i)
    result.push_back(
      static_cast<uint32_t>((deciders.empty() ? device(contributors[i]) : deciders[i]) / devices_a_host));
  return numbered_hosts(result);
}

std::vector<std::byte> all_reduce_trial::expected(const std::vector<uint32_t>& contributors) const {
  if (needs_all_inputs(options.datatype, options.op)) {
    std::vector<const std::byte*> column;
    for (auto rank : contributors)
      column.push_back(inputs[rank].data());
    std::vector<std::byte> result(bytes);
    reducer::of(options.datatype, options.op)
      ->many(column, result.data(), options.count, true, static_cast<uint32_t>(contributors.size()));
    return result;
  }
  using value = std::array<std::byte, 8>;
  auto element = size_of(options.datatype);
  auto world_size = static_cast<uint32_t>(contributors.size());
  std::vector<rank_memory<value>> memory(world_size);
  std::vector<schedule> schedules;
  const auto hosts = hosts_of(contributors);
  for (uint32_t i = 0; i < world_size; ++i) {
    schedules.push_back(*plan(proto::ALL_REDUCE, options.algorithm,
                              {.world_size = world_size, .rank = i, .count = options.count, .hosts = hosts}));
    memory[i].input.resize(options.count);
    for (uint64_t k = 0; k < options.count; ++k)
      std::memcpy(memory[i].input[k].data(), inputs[contributors[i]].data() + k * element, element);
  }
  auto op = [&](value incoming, value own) {
    value out{};
    reduce(options.datatype, options.op, incoming.data(), own.data(), out.data(), 1);
    return out;
  };
  auto finish = [&](value x) {
    finish_reduction(options.datatype, options.op, world_size, x.data(), 1);
    return x;
  };
  auto walked = interpret_on(memory, schedules, options.count, 1, op, finish);
  REQUIRE_MESSAGE(!walked.fault, render(walked.fault));
  std::vector<std::byte> result(bytes);
  for (uint64_t k = 0; k < options.count; ++k)
    std::memcpy(result.data() + k * element, memory[0].output[k].data(), element);
  return result;
}

bool all_reduce_trial::input_intact(uint32_t rank) {
  auto block = cluster.copy_out(device(rank), input_address(rank), bytes);
  return std::equal(block.bytes().begin(), block.bytes().end(), inputs[rank].begin());
}

std::string all_reduce_trial::judge(const std::vector<uint32_t>& contributors, const std::vector<uint32_t>& holders) {
  auto result = expected(contributors);
  for (auto rank : holders) {
    std::vector<std::byte> region(region_bytes(), guard);
    auto at = [&](uint64_t address) { return region.begin() + static_cast<ptrdiff_t>(address - base(rank)); };
    std::copy(inputs[rank].begin(), inputs[rank].end(), at(input_address(rank)));
    std::copy(result.begin(), result.end(), at(output_address(rank)));
    auto found = cluster.copy_out(device(rank), base(rank), region_bytes());
    for (uint64_t i = 0; i < region.size(); ++i)
      if (found.bytes()[i] != region[i])
        return fmt::format("rank {}: byte {} of {} (guard {}, data {}) is 0x{:02x}, not 0x{:02x}", rank, i,
                           region.size(), guard_bytes, bytes, static_cast<int>(found.bytes()[i]),
                           static_cast<int>(region[i]));
  }
  return {};
}

} // namespace ringmaster::test
