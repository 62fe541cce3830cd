#include "runtime/memory/memory_neighbours.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"

#include <spdlog/spdlog.h>

#include <filesystem>

namespace ringmaster {

caf::expected<std::shared_ptr<mapped_memory>> memory_neighbours::find(const memory_place& place) {
  std::lock_guard guard{mutex_};
  auto known = known_.find(place);
  if (known == known_.end()) {
    forget_removed();
    known = known_.emplace(place, mapped_memory::reach(place, access_)).first;
    if (!known->second && place.host == this_host() && place.host != 0
        && settings_.insert(std::filesystem::path{place.file}.parent_path()).second)
      spdlog::warn("{}: its blocks, and those of its process's other devices, take another route, unless route.use is "
                   "\"memory\"",
                   render(known->second.error()));
  }
  if (known->second)
    if (auto damage = (*known->second)->damage())
      known->second = damage;
  return known->second;
}

void memory_neighbours::forget(const memory_place& place) {
  std::lock_guard guard{mutex_};
  known_.erase(place);
}

void memory_neighbours::forget_removed() {
  auto now = std::chrono::steady_clock::now();
  ensure(now >= looked_, "time does not run backwards");
  if (now - looked_ < look_every_)
    return; // a thousand places may come at once
  looked_ = now;
  std::error_code ignored;
  std::erase_if(known_, [&](auto& x) { return !x.second || !std::filesystem::exists(x.first.file, ignored); });
}

} // namespace ringmaster
