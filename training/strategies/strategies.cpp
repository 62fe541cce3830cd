#include "training/strategies/strategies.hpp"

#include "messages/errc.hpp"
#include "runtime/schedule/collective.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace ringmaster::training {

namespace {

std::vector<known_strategy>& known() {
  static std::vector<known_strategy> all{RINGMASTER_STRATEGIES};
  return all;
}

} // namespace

std::span<const known_strategy> strategies() {
  return known();
}

const known_strategy* strategy_of(std::string_view name) {
  auto all = strategies();
  auto i = std::find_if(all.begin(), all.end(), [&](auto& x) { return x.name == name; });
  return i == all.end() ? nullptr : &*i;
}

caf::error register_strategy(const known_strategy& added) {
  const auto refused = [&](std::string_view why) {
    return invalid(fmt::format("the strategy \"{}\" cannot be registered: {}", added.name, why));
  };
  if (added.name.empty())
    return refused("it has no name");
  if (added.name == "all")
    return refused("the name means all of them");
  if (added.run == nullptr || added.check == nullptr || added.shape == nullptr || added.held == nullptr)
    return refused("it needs a program, a check, its shape, and what it holds");
  if (strategy_of(added.name) != nullptr)
    return refused("there is one of that name");
  known().push_back(added);
  return caf::none;
}

uint64_t samples_of_a_rank(const known_strategy& which, const model& m, uint32_t world_size) {
  const auto data = which.shape(m, world_size).data;
  return data == 0 ? 0 : (m.global_batch + (m.uneven ? data - 1 : 0)) / data;
}

uint64_t default_micro_batch(const known_strategy& which, const model& m, uint32_t world_size) {
  return which.cut == batch_cut::always ? 1 : samples_of_a_rank(which, m, world_size);
}

std::vector<beyond> needs_of(const known_strategy& which, const model& m) {
  std::vector<beyond> result;
  if (which.needs != beyond::nothing)
    result.push_back(which.needs);
  if (which.shares_positions && m.parallel.cp > 1)
    result.push_back(beyond::positions);
  if (which.shares_experts && m.parallel.ep > 1)
    result.push_back(beyond::experts);
  return result;
}

uint32_t chunks_of(const known_strategy& which, const model& m) {
  return which.chunks == chunk_use::parts ? m.parallel.chunks : which.chunks == chunk_use::there_and_back ? 2 : 1;
}

uint32_t expert_ranks(const model& m, uint32_t world_size) {
  return m.parallel.ep != 0 ? m.parallel.ep : world_size < 8 ? world_size : std::gcd(world_size, 8u);
}

range samples_of(const model& m, uint32_t part, uint32_t parts) {
  auto block = block_of({}, m.global_batch, parts, part);
  return {block.offset, block.offset + block.count};
}

uint64_t micro_batch_count(const model& m, uint32_t parts) {
  const auto least = m.global_batch / parts, most = m.global_batch % parts == 0 ? least : least + 1;
  return std::min((most - 1) / m.micro_batch + 1, least); // none is empty
}

range micro_batch_of(const model& m, range samples, uint64_t count, uint64_t index) {
  if ((samples.count() - 1) / m.micro_batch + 1 != count) { // others have a sample more or less
    auto block = block_of({}, samples.count(), static_cast<uint32_t>(count), static_cast<uint32_t>(index));
    return {samples.begin + block.offset, samples.begin + block.offset + block.count};
  }
  auto begin = samples.begin + index * m.micro_batch;
  return {begin, std::min(begin + m.micro_batch, samples.end)};
}

std::vector<range> micro_batches(const model& m, uint32_t part, uint32_t parts) {
  const auto samples = samples_of(m, part, parts);
  std::vector<range> result;
  for (uint64_t i = 0, count = micro_batch_count(m, parts); i < count; ++i)
    result.push_back(micro_batch_of(m, samples, count, i));
  return result;
}

std::vector<range> micro_batches(const model& m, range samples) {
  std::vector<range> result;
  for (auto at = samples.begin; at < samples.end; at += m.micro_batch)
    result.push_back({at, std::min(at + m.micro_batch, samples.end)});
  return result;
}

range layers_of(const model& m, uint32_t part, uint32_t parts) {
  auto block = block_of({}, m.layers, parts, part);
  return {block.offset, block.offset + block.count};
}

caf::error check_data_parallel(const model& m, uint32_t parts) {
  if (m.uneven && m.global_batch < parts)
    return invalid(fmt::format("a global batch of {} has no sample for each of {}", counted(m.global_batch, "sample"),
                               counted(parts, "data-parallel rank")));
  if (!m.uneven && m.global_batch % parts != 0)
    return invalid(fmt::format("a global batch of {} does not divide among {}; {}{} would", m.global_batch,
                               counted(parts, "data-parallel rank"),
                               m.global_batch < parts ? "" : fmt::format("{} or ", m.global_batch / parts * parts),
                               (m.global_batch / parts + 1) * parts));
  return caf::none;
}

caf::error check_mesh(const model& m, uint32_t world_size) {
  const auto tensor = std::max(m.parallel.tp, 1u), data = std::max(m.parallel.dp, 1u),
             context = std::max(m.parallel.cp, 1u);
  if (world_size % (uint64_t{tensor} * data * context) != 0)
    return invalid(fmt::format("{} ranks are no multiple of {} tensor-parallel{} times {} data-parallel ones",
                               world_size, tensor,
                               context == 1 ? "" : fmt::format(" times {} context-parallel", context), data));
  return caf::none;
}

} // namespace ringmaster::training
