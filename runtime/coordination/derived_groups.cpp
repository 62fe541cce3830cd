#include "runtime/coordination/derived_groups.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringmaster {

namespace {

caf::error denied(std::string text) {
  return invalid(std::move(text));
}

template <class Ids>
device_ids from_wire(const Ids& x) {
  device_ids result;
  for (auto id : x)
    result.push_back(device_id{id});
  return result;
}

caf::expected<rank_groups> split(const proto::CommDeriveRequest::Split& x, const device_ids& ranks) {
  if (auto callers = from_wire(x.device_ids()); !callers.empty() && callers != ranks)
    return denied(fmt::format("split: devices 0x{:x} called it, and by now the ranks are devices 0x{:x}; split again",
                              fmt::join(callers, ", 0x"), fmt::join(ranks, ", 0x")));
  auto check = [&](int given, const char* what) {
    return given == 0 || given == static_cast<int>(ranks.size())
             ? caf::error{}
             : denied(fmt::format("split: {} {} for {} ranks; give one a rank, or none", given, what, ranks.size()));
  };
  RETURN_ERROR(check(x.colors_size(), "colours"));
  RETURN_ERROR(check(x.keys_size(), "keys"));
  std::map<int32_t, std::vector<std::pair<int64_t, device_id>>> keyed;
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank)
    if (auto color = x.colors().empty() ? 0 : x.colors(rank); color >= 0)
      keyed[color].emplace_back(x.keys().empty() ? 0 : x.keys(rank), ranks[static_cast<size_t>(rank)]);
  rank_groups result;
  for (auto& [color, members] : keyed) {
    std::stable_sort(members.begin(), members.end(), [](auto& a, auto& b) { return a.first < b.first; });
    for (auto& member : members)
      result[color].push_back(member.second);
  }
  return result;
}

caf::expected<rank_groups> shrink(const proto::CommDeriveRequest::Shrink& x, const device_ids& ranks) {
  device_ids left;
  for (auto rank : x.ranks())
    if (rank >= ranks.size())
      return denied(fmt::format("shrink: there is no rank {}; the communicator has ranks 0 to {}", rank,
                                ranks.size() - 1));
  for (uint32_t rank = 0; rank < ranks.size(); ++rank)
    if (std::count(x.ranks().begin(), x.ranks().end(), rank) == 0)
      left.push_back(ranks[rank]);
  if (left.empty())
    return denied("shrink: no rank would be left");
  return rank_groups{{0, left}};
}

caf::expected<rank_groups> grow(const proto::CommDeriveRequest::Grow& x, device_ids ranks,
                                const device_registry& devices) {
  TRY(more, x.device_ids().empty() ? devices.free_devices(x.devices(), "grow") : from_wire(x.device_ids()));
  ranks.insert(ranks.end(), more->begin(), more->end());
  return rank_groups{{0, std::move(ranks)}};
}

} // namespace

caf::expected<rank_groups> derived_groups(const proto::CommDeriveRequest& x, const device_ids& ranks,
                                          const device_registry& devices) {
  if (x.has_split())
    return split(x.split(), ranks);
  if (x.has_shrink())
    return shrink(x.shrink(), ranks);
  if (x.has_grow())
    return grow(x.grow(), ranks, devices);
  return rank_groups{{0, ranks}};
}

} // namespace ringmaster
