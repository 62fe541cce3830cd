#pragma once

#include "runtime/health/deadlines.hpp"
#include "runtime/invariants/ensure.hpp"

#include <caf/error.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace ringmaster {

/// Clients' calls that a device or a communicator (`Receiver`: its id) has not answered. A call whose receiver ends
/// first or is late fails here. Each call is answered once, by the receiver or here. `Peer`: whose calls are counted
/// together.
template <class Receiver, class Peer = uint64_t>
class pending_calls {
public:
  using number = uint64_t;
  using time_point = deadlines::time_point;

  /// `fail` answers the client with an error. `peer`: the caller.
  number begun(Receiver who, time_point due, std::function<void(const caf::error&)> fail, Peer peer = {}) {
    ensure(static_cast<bool>(fail), "a call that waits can be failed");
    ++by_peer_[peer];
    const bool is_new = calls_.emplace(++last_, call{who, std::move(fail), std::move(peer)}).second;
    ensure(is_new, "each call has a number of its own");
    ensure(by_peer_.size() <= calls_.size(), "a peer that is counted has a call");
    limits_.add(last_, due);
    return last_;
  }

  /// The receiver has answered. Returns whether the client still waits.
  bool ended(number x) {
    limits_.remove(x);
    auto found = calls_.extract(x);
    if (found)
      uncount(found.mapped());
    return !found.empty();
  }

  /// Calls of this peer that have not been answered.
  size_t count_of(const Peer& peer) const {
    auto found = by_peer_.find(peer);
    return found == by_peer_.end() ? 0 : found->second;
  }

  /// When to call `expire` next: the caller must arrange that. None: an earlier call is arranged.
  std::optional<time_point> timer() { return limits_.timer(); }

  /// Fails those whose limit has passed.
  void expire(time_point now, const caf::error& late) {
    for (auto each : limits_.take_due(now))
      if (auto found = calls_.extract(each)) { // unless one before it has ended the receiver, and so this one
        uncount(found.mapped());
        found.mapped().fail(late);
      }
  }

  /// The receiver has ended: fails all calls that wait for it.
  void gone(Receiver who, const caf::error& why) {
    std::vector<call> failed; // `fail` may start a call
    for (auto i = calls_.begin(); i != calls_.end();)
      if (i->second.receiver == who) {
        limits_.remove(i->first);
        uncount(i->second);
        failed.push_back(std::move(i->second));
        i = calls_.erase(i);
      } else {
        ++i;
      }
    for (auto& x : failed)
      x.fail(why);
  }

  size_t size() const { return calls_.size(); }

private:
  struct call {
    Receiver receiver;
    std::function<void(const caf::error&)> fail;
    Peer peer;
  };

  void uncount(const call& x) {
    const auto its = by_peer_.find(x.peer);
    ensure(its != by_peer_.end() && its->second > 0, "calls that wait are counted for each peer");
    if (--its->second == 0)
      by_peer_.erase(its);
  }

  std::map<number, call> calls_;
  std::map<Peer, size_t> by_peer_;
  deadlines limits_;
  number last_ = 0;
};

} // namespace ringmaster
