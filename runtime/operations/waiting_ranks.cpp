#include "runtime/operations/waiting_ranks.hpp"

#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <map>
#include <tuple>
#include <utility>

namespace ringmaster {

void waiting_ranks::publish(communicator_id where, std::map<device_id, std::string> calls, time_point now) {
  std::lock_guard guard{mutex_};
  ensure(where != communicator_id{}, "a communicator that publishes has its id");
  std::erase_if(entries_, [&](auto& x) { return now - x.second.published_at > lifetime_; });
  if (calls.empty())
    return;
  auto& published = entries_[where];
  ensure(published.published_at <= now, "time does not run backwards");
  published = {std::move(calls), now};
}

std::string waiting_ranks::elsewhere(device_id device, communicator_id here, time_point now) const {
  std::lock_guard guard{mutex_};
  for (auto& [where, x] : entries_) {
    auto call = x.calls.find(device);
    if (where != here && call != x.calls.end() && now - x.published_at <= lifetime_)
      return fmt::format(", and waits in communicator {} for {}", where, call->second);
  }
  return {};
}

namespace {

/// `places`: of each rank.
template <class Places>
std::vector<uint32_t> numbers_of(const Places& places) {
  std::map<typename Places::value_type, uint32_t> hosts;
  std::vector<uint32_t> result;
  result.reserve(places.size());
  for (const auto& x : places)
    result.push_back(hosts.emplace(x, static_cast<uint32_t>(hosts.size())).first->second);
  ensure(result.size() == places.size(), "every rank lies on a host");
  if (hosts.size() < 2)
    result.clear();
  return result;
}

} // namespace

std::vector<uint32_t> rank_hosts(std::span<const device_handle> ranks, bool share_memory) {
  using place = std::tuple<uint64_t, uint64_t, caf::node_id>; // kernel and file system, or else the process
  std::vector<place> places;
  for (const auto& x : ranks)
    if (share_memory && x.memory != nullptr && x.memory->host != 0)
      places.emplace_back(x.memory->host, x.memory->file_system, caf::node_id{});
    else
      places.emplace_back(0, 0, x.device->node());
  return numbers_of(places);
}

std::vector<uint32_t> numbered_hosts(std::span<const uint32_t> by_rank) {
  return numbers_of(std::vector<uint32_t>(by_rank.begin(), by_rank.end()));
}

} // namespace ringmaster
