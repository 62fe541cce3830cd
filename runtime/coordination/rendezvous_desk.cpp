#include "runtime/coordination/rendezvous_desk.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringmaster {

namespace {

constexpr uint32_t world_size_max = 65'536;
constexpr size_t groups_max = 1024;

/// "rank 3", "ranks 0, 2, 5 and 17 more"
std::string ranks_text(const std::vector<uint32_t>& ranks) {
  constexpr size_t named_max = 16;
  std::vector<uint32_t> named{ranks.begin(), ranks.begin() + static_cast<long>(std::min(ranks.size(), named_max))};
  auto rest = ranks.size() - named.size();
  return fmt::format("rank{} {}{}", ranks.size() == 1 ? "" : "s", fmt::join(named, ", "),
                     rest == 0 ? "" : fmt::format(" and {} more", rest));
}

template <class Members, class Predicate>
std::vector<uint32_t> ranks_that(const Members& members, Predicate are) {
  std::vector<uint32_t> result;
  for (uint32_t rank = 0; rank < members.size(); ++rank)
    if (are(members[rank]))
      result.push_back(rank);
  return result;
}

template <class Absences>
void forget_expired(Absences& all, rendezvous_desk::time_point now) {
  std::erase_if(all, [now](auto& x) { return x.second.until < now; });
}

} // namespace

rendezvous_desk::missing_ranks rendezvous_desk::missing_of(const std::string& name, const rank_group& x) {
  const auto missing = ranks_that(x.ranks, [](auto& rank) { return !rank.is_here; });
  return {fmt::format("{} of {} of \"{}\"", ranks_text(missing), x.ranks.size(), name), missing.size()};
}

std::vector<rendezvous_desk::number> rendezvous_desk::waiting(const rank_group& x) {
  std::vector<number> result;
  for (auto& rank : x.ranks)
    if (rank.waits != 0)
      result.push_back(rank.waits);
  return result;
}

caf::expected<std::optional<rendezvous_desk::complete_group>> rendezvous_desk::arrived(
  const proto::RendezvousRequest& x, number who, time_point now) {
  if (x.world_size() == 0 || x.world_size() > world_size_max || x.rank() >= x.world_size())
    return invalid(fmt::format("there is no rank {} of {}: ranks are counted from 0, and {} at most", x.rank(),
                               x.world_size(), world_size_max));
  if (groups_.count(x.group()) == 0 && groups_.size() >= groups_max)
    return make_error(errc::too_many, fmt::format("{} groups of ranks exist already", groups_max));
  auto& group = groups_[x.group()];
  if (group.ranks.empty())
    group.ranks.resize(x.world_size());
  if (group.ranks.size() != x.world_size())
    return invalid(fmt::format("rank {} has a world size of {} for \"{}\", but other ranks have {}", x.rank(),
                               x.world_size(), x.group(), group.ranks.size()));
  ensure(who != 0, "a rank that waits has a number");
  auto& rank = group.ranks[x.rank()];
  if (rank.is_here)
    return make_error(errc::in_use, fmt::format("rank {} of \"{}\" has come already, with device 0x{:x}", x.rank(),
                                                x.group(), rank.device));
  absent_.erase({x.group(), x.rank()});
  forget_expired(absent_, now);
  for (auto i = absent_.lower_bound({x.group(), 0}); i != absent_.end() && i->first.first == x.group(); ++i)
    if (i->first.second < x.world_size() && !group.ranks[i->first.second].is_here) {
      auto problem = missing(i->first, x.world_size(), i->second.cause);
      if (waiting(group).empty())
        groups_.erase(x.group());
      return problem;
    }
  ensure(!group.communicator, "a rank comes before its group has formed");
  ensure(rank.waits == 0, "a rank that comes does not wait yet");
  rank = {device_id{x.device_id()}, who, true, false};
  complete_group result{x.group(), {}};
  for (auto& each : group.ranks) {
    if (!each.is_here)
      return std::optional<complete_group>{};
    result.devices.push_back(each.device);
  }
  return std::optional{std::move(result)};
}

void rendezvous_desk::restore(const std::string& name, const std::vector<device_id>& ranks,
                              communicator_id communicator) {
  auto& group = groups_[name];
  ensure(group.ranks.empty(), "a group is restored before its ranks call");
  for (auto device : ranks)
    group.ranks.push_back({device, 0, true, false});
  group.communicator = communicator;
  group.is_restored = true;
  have_formed_.insert(name);
}

std::optional<communicator_id> rendezvous_desk::formed_with(const proto::RendezvousRequest& x) const {
  const auto found = groups_.find(x.group());
  if (found == groups_.end() || !found->second.is_restored || x.rank() >= found->second.ranks.size()
      || found->second.ranks[x.rank()].device != device_id{x.device_id()})
    return std::nullopt;
  return found->second.communicator;
}

std::vector<rendezvous_desk::number> rendezvous_desk::formed(const std::string& name,
                                                             const caf::expected<communicator_id>& communicator) {
  auto found = groups_.find(name);
  if (found == groups_.end())
    return {};
  auto& group = found->second;
  auto result = waiting(group);
  if (!communicator) {
    groups_.erase(found);
    return result;
  }
  ensure(!group.communicator, "a group forms once");
  ensure(std::all_of(group.ranks.begin(), group.ranks.end(), [](auto& x) { return x.is_here; }),
         "a group forms when all of its ranks have come");
  ensure(result.size() == group.ranks.size(), "all ranks wait for their communicator");
  group.communicator = *communicator;
  for (auto& rank : group.ranks)
    rank.waits = 0;
  std::erase_if(absent_, [&](auto& x) { return x.first.first == name; });
  if (have_formed_.size() >= groups_max)
    have_formed_.clear(); // it only spares ranks an error
  have_formed_.insert(name);
  return result;
}

std::optional<rendezvous_desk::left_group> rendezvous_desk::leaves(const proto::FinalizeRequest& x, number who) {
  ensure(who != 0, "a rank that leaves has a number");
  auto found = groups_.find(x.group());
  departures_.push_back({x.group(), x.rank(), true});
  if (found == groups_.end() || !found->second.communicator || x.rank() >= found->second.ranks.size())
    return left_group{{}, {who}};
  auto& rank = found->second.ranks[x.rank()];
  if (rank.waits != 0)
    return left_group{{}, {who}}; // it has called Finalize before
  ensure(rank.is_here, "a rank leaves that has come");
  rank.waits = who;
  rank.has_left = true;
  return take_if_left(found);
}

std::optional<rendezvous_desk::left_group> rendezvous_desk::take_if_left(groups::iterator x) {
  auto& group = x->second;
  if (!group.communicator || !std::all_of(group.ranks.begin(), group.ranks.end(), [](auto& y) { return y.has_left; }))
    return std::nullopt;
  ensure(std::ranges::all_of(group.ranks, [](auto& y) { return y.is_here; }), "only ranks that have come leave");
  left_group result{*group.communicator, waiting(group)};
  groups_.erase(x);
  return result;
}

caf::error rendezvous_desk::missing(const rank_of_group& who, size_t world_size, const std::string& cause) const {
  return make_error(errc::device_lost,
                    fmt::format("rank {} of {} of \"{}\" does not come: {}", who.second, world_size, who.first, cause));
}

std::vector<rendezvous_desk::answer> rendezvous_desk::absent(const proto::RankAbsentRequest& x, time_point now) {
  auto found = groups_.find(x.group());
  bool gathers = found != groups_.end() && !found->second.communicator;
  if (!gathers && (found != groups_.end() || have_formed_.count(x.group()) != 0))
    return {}; // it has come in time
  if (gathers && x.rank() >= found->second.ranks.size())
    return {};
  forget_expired(absent_, now);
  if (absent_.size() < world_size_max)
    absent_[{x.group(), x.rank()}] = {x.cause(), now + absent_kept};
  if (!gathers || found->second.ranks[x.rank()].is_here)
    return {}; // no rank waits, or the loss of its device will say more
  answer result{waiting(found->second), missing({x.group(), x.rank()}, found->second.ranks.size(), x.cause())};
  groups_.erase(found);
  return {std::move(result)};
}

std::vector<rendezvous_desk::answer> rendezvous_desk::lost(device_id device, const std::string& cause) {
  std::vector<answer> result;
  for (auto i = groups_.begin(); i != groups_.end();) {
    auto& [name, group] = *i;
    auto rank = std::find_if(group.ranks.begin(), group.ranks.end(),
                             [&](auto& x) { return x.is_here && x.device == device; });
    if (rank == group.ranks.end() || group.communicator) {
      if (rank != group.ranks.end()) {
        const bool had_left = std::exchange(rank->has_left, true);
        if (!had_left && std::ranges::any_of(group.ranks, [](auto& x) { return !x.has_left; }))
          departures_.push_back({name, static_cast<uint32_t>(rank - group.ranks.begin()), false});
      }
      ++i;
      continue;
    }
    result.push_back({waiting(group),
                      make_error(errc::device_lost,
                                 fmt::format("rank {} of {} of \"{}\" (device 0x{:x}) was lost before all had come: {}",
                                             rank - group.ranks.begin(), group.ranks.size(), name, device, cause))});
    i = groups_.erase(i);
  }
  return result;
}

std::optional<rendezvous_desk::left_group> rendezvous_desk::next_left() {
  for (auto i = groups_.begin(); i != groups_.end(); ++i)
    if (auto left = take_if_left(i))
      return left;
  return std::nullopt;
}

std::optional<rendezvous_desk::missing_ranks> rendezvous_desk::awaited_by(number who) const {
  for (auto& [name, group] : groups_) {
    const auto all = waiting(group);
    if (group.communicator || all.empty() || *std::ranges::min_element(all) != who)
      continue;
    return missing_of(name, group);
  }
  return std::nullopt;
}

std::optional<rendezvous_desk::answer> rendezvous_desk::expired(number who, const std::string& limit) {
  for (auto i = groups_.begin(); i != groups_.end(); ++i) {
    auto& [name, group] = *i;
    auto rank = std::find_if(group.ranks.begin(), group.ranks.end(), [&](auto& x) { return x.waits == who; });
    if (rank == group.ranks.end())
      continue;
    if (group.communicator) {
      rank->waits = 0; // it counts as having left
      auto at_work = ranks_that(group.ranks, [](auto& x) { return !x.has_left; });
      return answer{{who},
                    make_error(errc::timed_out, fmt::format("{} of {} of \"{}\" had not left after {}",
                                                            ranks_text(at_work), group.ranks.size(), name, limit))};
    }
    // All of them: a group that one rank has given up cannot come together, and all get the same error.
    answer result{waiting(group), make_error(errc::timed_out, fmt::format("{} did not come within {}",
                                                                          missing_of(name, group).text, limit))};
    groups_.erase(i);
    return result;
  }
  return std::nullopt;
}

} // namespace ringmaster
