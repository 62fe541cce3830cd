#include "actors/trust/peer_directory.hpp"

#include <spdlog/spdlog.h>

#include <chrono>

namespace ringmaster {

void peer_directory::connected(const caf::node_id& process, connected_peer who) {
  std::scoped_lock lock{mutex_};
  auto& known = peers_[process];
  known.first = std::move(who);
  ++known.second;
}

void peer_directory::disconnected(const caf::node_id& process) {
  std::scoped_lock lock{mutex_};
  const auto known = peers_.find(process);
  if (known == peers_.end() || --known->second.second > 0)
    return;
  left_.push_back(process);
  if (left_.size() <= left_max)
    return;
  const auto oldest = peers_.find(left_.front());
  if (oldest != peers_.end() && oldest->second.second == 0)
    peers_.erase(oldest);
  left_.pop_front();
}

std::optional<connected_peer> peer_directory::find(const caf::node_id& process) const {
  std::scoped_lock lock{mutex_};
  const auto known = peers_.find(process);
  return known == peers_.end() ? std::nullopt : std::optional{known->second.first};
}

void peer_directory::refused(const connected_peer& from, std::string why) {
  std::function<void(const refused_message&)> report;
  uint64_t times = 0;
  {
    std::scoped_lock lock{mutex_};
    times = rate_limiter_.happened(std::chrono::steady_clock::now());
    report = report_;
  }
  if (times == 0)
    return;
  spdlog::warn("a message from {} ({}) was refused: {} ({} since the last report)", from.address, text_of(from.who),
               why, times);
  if (report)
    report({from, std::move(why), times - 1});
}

void peer_directory::when_refused(std::function<void(const refused_message&)> then) {
  std::scoped_lock lock{mutex_};
  report_ = std::move(then);
}

} // namespace ringmaster
