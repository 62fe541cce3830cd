#include "runtime/algorithms/hierarchies/host_map.hpp"

#include <algorithm>

namespace ringmaster {

host_map::host_map(const plan_request& request) : host_of_(request.hosts), place_of_(request.world_size) {
  host_of_.resize(request.world_size);                           // none given: all on one
  std::vector<uint32_t> numbers(request.world_size, UINT32_MAX); // numbers may be left out
  for (uint32_t rank = 0; rank < request.world_size; ++rank) {
    auto& number = numbers[host_of_[rank]];
    if (number == UINT32_MAX) {
      number = size();
      ranks_.emplace_back();
    }
    host_of_[rank] = number;
    place_of_[rank] = static_cast<uint32_t>(ranks_[number].size());
    ranks_[number].push_back(rank);
    largest_ = std::max(largest_, place_of_[rank] + 1);
  }
}

uint32_t host_map::partner_of(uint32_t rank, uint32_t host) const {
  return host == host_of(rank) ? rank : ranks_[host][place_of(rank) % ranks_[host].size()];
}

std::vector<uint32_t> host_map::partners(uint32_t rank, uint32_t host) const {
  std::vector<uint32_t> result;
  if (host != host_of(rank))
    for (auto place = place_of(rank); place < ranks_[host].size(); place += company(rank))
      result.push_back(ranks_[host][place]);
  return result;
}

std::vector<uint32_t> host_map::partners(uint32_t rank) const {
  std::vector<uint32_t> result;
  for (uint32_t host = 0; host < size(); ++host)
    for (auto x : partners(rank, host))
      result.push_back(x);
  return result;
}

} // namespace ringmaster
