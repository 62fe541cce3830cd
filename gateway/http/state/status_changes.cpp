#include "gateway/http/state/status_changes.hpp"

#include <unordered_map>

namespace ringmaster::gateway {

namespace {

using index = std::unordered_map<std::string, const json*>;

index by(const char* key, const json& list) {
  index result;
  for (auto& x : list)
    result.emplace(x.at(key).dump(), &x);
  return result;
}

/// Entries of `to` that `from` lacks or has differently.
json changed(const char* key, const json& from, const json& to) {
  const auto before = by(key, from);
  auto result = json::array();
  for (auto& x : to) {
    const auto known = before.find(x.at(key).dump());
    if (known == before.end() || *known->second != x)
      result.push_back(x);
  }
  return result;
}

/// Keys of entries of `from` that `to` lacks.
json removed(const char* key, const json& from, const json& to) {
  const auto now = by(key, to);
  auto result = json::array();
  for (auto& x : from)
    if (now.count(x.at(key).dump()) == 0)
      result.push_back(x.at(key));
  return result;
}

json without_ranks(const json& communicator) {
  auto result = communicator;
  result.erase("ranks");
  return result;
}

json without_ranks_all(const json& communicators) {
  auto result = json::array();
  for (auto& x : communicators)
    result.push_back(without_ranks(x));
  return result;
}

/// The ranks that have changed, by communicator.
json changed_ranks(const json& from, const json& to) {
  const auto before = by("id", from);
  auto result = json::array();
  for (auto& x : to) {
    const auto known = before.find(x.at("id").dump());
    auto& ranks = x.at("ranks");
    const bool all = known == before.end() || known->second->at("ranks").size() != ranks.size();
    auto changes = json::array();
    for (size_t i = 0; i < ranks.size(); ++i)
      if (all || known->second->at("ranks")[i] != ranks[i])
        changes.push_back(ranks[i]);
    if (!changes.empty() || (all && known != before.end()))
      result.push_back({{"communicator", x.at("id")}, {"all", all}, {"ranks", std::move(changes)}});
  }
  return result;
}

} // namespace

std::optional<json> status_changes(const json& from, const json& to) {
  json result;
  result["time_ms"] = to.at("time_ms");
  const auto nothing = result.size();
  for (const auto* section : {"coordinator", "route", "journal", "rates", "queues", "lost"})
    if (from.at(section) != to.at(section))
      result[section] = to.at(section);
  const auto add = [&result](const char* name, json changes) {
    if (!changes.empty())
      result[name] = std::move(changes);
  };
  add("nodes", changed("id", from.at("nodes"), to.at("nodes")));
  add("devices", changed("id", from.at("devices"), to.at("devices")));
  auto& old_communicators = from.at("communicators");
  auto& new_communicators = to.at("communicators");
  add("communicators", changed("id", without_ranks_all(old_communicators), without_ranks_all(new_communicators)));
  add("ranks", changed_ranks(old_communicators, new_communicators));
  json gone{{"nodes", removed("name", from.at("nodes"), to.at("nodes"))},
            {"devices", removed("id", from.at("devices"), to.at("devices"))},
            {"communicators", removed("id", old_communicators, new_communicators)}};
  if (!gone["nodes"].empty() || !gone["devices"].empty() || !gone["communicators"].empty())
    result["removed"] = std::move(gone);
  if (result.size() == nothing)
    return std::nullopt;
  return result;
}

} // namespace ringmaster::gateway
