#include "runtime/operations/waiting_ranks.hpp"

#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

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

} // namespace ringmaster
