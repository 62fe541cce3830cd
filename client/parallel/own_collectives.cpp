#include "client/parallel/own_collectives.hpp"

#include "messages/errc.hpp"
#include "runtime/schedule/collective.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace ringmaster::parallel {

caf::expected<std::vector<float>> own_all_reduce(tensor_group& over, std::span<const float> x) {
  const auto ranks = over.size(), me = over.rank(), next = (me + 1) % ranks, before = (me + ranks - 1) % ranks;
  std::vector<float> result(x.begin(), x.end());
  const auto block = [&](uint32_t index) {
    const auto where = block_of(buffer::input, result.size(), ranks, index % ranks);
    return std::span{result}.subspan(where.offset, where.count);
  };
  for (uint32_t round = 0; round < 2 * (ranks - 1); ++round) {
    // The block that comes is the one that the next round sends on.
    const auto from_me = block(me + 2 * ranks - round), to_me = block(me + 2 * ranks - round - 1);
    auto came = over.pass(next, from_me, before, to_me.size());
    if (!came)
      return std::move(came.error());
    if (round < ranks - 1)
      std::ranges::transform(to_me, *came, to_me.begin(), std::plus{});
    else
      std::ranges::copy(*came, to_me.begin());
  }
  return result;
}

caf::expected<std::vector<float>> own_all_to_all(tensor_group& over, std::span<const float> blocks) {
  const auto ranks = over.size(), me = over.rank();
  if (blocks.size() % ranks != 0)
    return invalid(fmt::format("all_to_all: {} numbers are no {} equal blocks, one for each rank", blocks.size(),
                               ranks));
  const auto each = blocks.size() / ranks;
  std::vector<float> result(blocks.begin(), blocks.end()); // the own one stays where it is
  for (uint32_t round = 1; round < ranks; ++round) {
    const auto to = (me + round) % ranks, from = (me + ranks - round) % ranks;
    auto came = over.pass(to, blocks.subspan(to * each, each), from, each);
    if (!came)
      return std::move(came.error());
    std::ranges::copy(*came, result.begin() + static_cast<ptrdiff_t>(from * each));
  }
  return result;
}

} // namespace ringmaster::parallel
