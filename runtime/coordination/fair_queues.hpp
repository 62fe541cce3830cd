#pragma once

#include "runtime/invariants/ensure.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace ringmaster {

/// Shares a receiver's mailbox among the peers that send it requests. Each peer has a few requests in the mailbox at a
/// time; its others wait in its own queue, and one of them follows for each that was handled. So a peer that sends many
/// requests delays the others by a few of them only. A peer whose queue is full is refused. Requests of one peer keep
/// their order. Pure; not thread-safe.
template <class Peer, class Request>
class fair_queues {
public:
  struct limits {
    size_t in_mailbox = 16;      ///< Requests of one peer in the mailbox, at least 1.
    size_t waiting_max = 16'384; ///< Requests of one peer in its queue.
  };
  enum class place : uint8_t {
    mailbox, ///< The request goes there now.
    queue,   ///< It was taken, and comes from `handled` later.
    nowhere  ///< The peer's queue is full: the request is refused.
  };

  /// A request has come. It is moved from where its place is the queue.
  place add(const Peer& peer, Request& request, const limits& most) {
    auto& its = entry_of(peer);
    if (its.in_mailbox < most.in_mailbox) {
      ensure(its.waiting.empty(), "requests of one peer keep their order");
      ++its.in_mailbox;
      return place::mailbox;
    }
    if (its.waiting.size() >= most.waiting_max)
      return place::nowhere;
    its.waiting.push_back(std::move(request));
    ensure(its.waiting.size() <= most.waiting_max, "a peer's queue has a limit");
    return place::queue;
  }

  /// The receiver has handled a request of this peer. Returns the peer's next one, which goes to the mailbox.
  std::optional<Request> handled(const Peer& peer) {
    auto found = peers_.find(peer);
    if (found == peers_.end())
      return std::nullopt; // the receiver has ended meanwhile
    auto& its = found->second;
    ensure(its.in_mailbox > 0, "a request that was handled was in the mailbox");
    if (its.waiting.empty()) {
      if (--its.in_mailbox == 0)
        spare_ = peers_.extract(found);
      return std::nullopt;
    }
    std::optional<Request> next{std::move(its.waiting.front())};
    its.waiting.pop_front();
    return next;
  }

  /// The receiver has ended: all that waits, each peer's in its order.
  std::vector<Request> take_all() {
    std::vector<Request> result;
    for (auto& [peer, its] : std::exchange(peers_, {}))
      for (auto& request : its.waiting)
        result.push_back(std::move(request));
    return result;
  }

  /// Peers with a request in the mailbox.
  size_t size() const { return peers_.size(); }

private:
  struct entry {
    size_t in_mailbox = 0;
    std::deque<Request> waiting; ///< Empty while there is room in the mailbox.
  };

  entry& entry_of(const Peer& peer) {
    if (auto known = peers_.find(peer); known != peers_.end())
      return known->second;
    if (spare_.empty())
      return peers_[peer];
    spare_.key() = peer;
    return peers_.insert(std::move(spare_)).position->second;
  }

  std::map<Peer, entry> peers_;
  /// Of the peer that had its last request handled: one that waits for each answer would allocate each time.
  typename std::map<Peer, entry>::node_type spare_;
};

} // namespace ringmaster
