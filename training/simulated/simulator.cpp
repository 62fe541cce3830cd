#include "training/simulated/simulator.hpp"

#include "messages/errc.hpp"
#include "training/simulated/simulated_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace ringmaster::training {

namespace {

/// Whether there is a way to cut a layer of which all parts are there.
bool has_whole(std::vector<finished_parts> all) {
  std::ranges::sort(all, {}, [](auto& x) { return std::tuple{x.cut, x.tensor_count, x.count, x.parts.begin}; });
  uint64_t end = 0; // of the parts from the first one on
  for (size_t i = 0; i < all.size(); ++i) {
    auto& x = all[i];
    if (i == 0 || x.cut != all[i - 1].cut || x.tensor_count != all[i - 1].tensor_count || x.count != all[i - 1].count)
      end = 0;
    if (x.parts.begin <= end)
      end = std::max(end, x.parts.end);
    if (end == uint64_t{x.tensor_count} * x.count)
      return true;
  }
  return false;
}

} // namespace

caf::error simulated_world::left_behind() const {
  for (uint32_t rank = 0; rank < world_size(); ++rank)
    for (auto& x : ranks_[rank].inboxes)
      if (!x.sent.empty())
        return invalid(fmt::format("rank {} has ended without receiving what rank {} sent: the {}", rank, x.sender,
                                   text_of(x.sent.front().what)));
  return caf::none;
}

caf::error simulated_world::missing_result() const {
  for (size_t layer = 0; layer < finished_.size(); ++layer)
    if (!has_whole(finished_[layer]))
      return invalid(fmt::format("no rank has finished {}weight of layer {}: update it, and finish it",
                                 finished_[layer].empty() ? "the " : "the whole ", layer));
  return caf::none;
}

std::string simulated_world::waits_for(uint32_t rank, uint32_t& other) const {
  auto& its = ranks_[rank];
  auto& x = its.waits->aside ? *its.beside.front() : *its.waits;
  if (x.what == op::receive) {
    other = x.peer;
    return fmt::format("rank {} waits for rank {} to send it {}{}", rank, other, text_of(x.argument.kind),
                       x.aside ? " aside" : "");
  }
  auto& met = meetings_.find({x.among, x.aside})->second.ranks;
  other = x.among.rank(static_cast<uint32_t>(std::find(met.begin(), met.end(), nullptr) - met.begin()));
  return fmt::format("rank {} waits for rank {} to call {} of the {}", rank, other, name_of(x.what),
                     text_of(x.argument));
}

caf::error simulated_world::deadlock() const {
  auto stuck = std::find_if(ranks_.begin(), ranks_.end(), [](auto& x) { return x.waits != nullptr; });
  if (stuck == ranks_.end())
    return caf::none;
  std::vector<uint32_t> chain;
  auto rank = static_cast<uint32_t>(stuck - ranks_.begin());
  while (ranks_[rank].waits != nullptr && std::find(chain.begin(), chain.end(), rank) == chain.end()) {
    chain.push_back(rank);
    waits_for(chain.back(), rank);
  }
  const bool ended = ranks_[rank].waits == nullptr;
  std::string text;
  for (auto i = ended ? chain.begin() : std::find(chain.begin(), chain.end(), rank); i != chain.end(); ++i) {
    uint32_t other = 0;
    text += (text.empty() ? "" : ", ") + waits_for(*i, other);
  }
  return invalid(ended ? fmt::format("{}, which has ended", text) : text + ": none of them can go on");
}

caf::expected<training_outcome> simulate(const strategy_function& program, const model& trained, uint32_t world_size,
                                         const cost_model& costs, bool with_events, uint64_t operations_max,
                                         const training_watch& watch) {
  if (world_size == 0)
    return invalid("a world needs at least one rank, not 0");
  if (trained.global_batch > UINT32_MAX)
    return invalid(fmt::format("a global batch has at most {} samples, not {}", UINT32_MAX, trained.global_batch));
  return simulated_world{trained, world_size, costs, with_events, operations_max, watch}.run(program);
}

} // namespace ringmaster::training
