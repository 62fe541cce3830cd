#pragma once

#include "tests/support/nodes/simulated_process.hpp"

#include <deque>
#include <functional>
#include <list>
#include <random>
#include <set>
#include <utility>

namespace ringmaster::test {

/// Carries what simulated processes say to each other. A connection keeps its order, as TCP does, and loses nothing
/// while it lasts; each message takes as long as the seed draws, so those of different connections overtake each other.
/// A way between two processes may pause for a while, as with packets that get lost: what is said meanwhile comes
/// later. Or it is cut: its connections break, each end learns that at a time of its own, what was under way is lost,
/// and no new one is made until it is healed.
class simulated_network {
public:
  using time_point = simulated_process::time_point;
  using whom_answer = std::function<void(const caf::expected<caf::strong_actor_ptr>&)>;

  struct options {
    caf::timespan delay = std::chrono::microseconds{50}; ///< The shortest.
    caf::timespan spread{0};                             ///< Up to so much longer, each message by itself.
    uint32_t late_per_mille = 0;                         ///< How many take a hundred times as long.
  };

  simulated_network(std::mt19937_64& random, const options& opts) : random_(random), options_(opts) {}

  /// Connects; `done` gets a handle for `published`, an actor of `to`. Returns whether the first message is on its way:
  /// if not, no one can get there now.
  bool connect(simulated_process& from, simulated_process& to, const caf::strong_actor_ptr& published,
               caf::timespan limit, time_point now, whom_answer done);

  /// Takes what the process has written.
  void gather(simulated_process& from, time_point now);
  /// When the next message arrives that its receiver can read.
  std::optional<time_point> next_arrival() const;
  /// Lets it arrive if it is due. Returns whether one was.
  bool deliver(time_point now);

  void stall(simulated_process& a, simulated_process& b) { stalled_.insert(way(a, b)); }
  /// `lag`: by so much `b` learns later.
  void cut(simulated_process& a, simulated_process& b, time_point now, caf::timespan lag);
  void heal(simulated_process& a, simulated_process& b);
  void heal_all();
  /// The process is gone: others read what it had sent, then the end.
  void gone(simulated_process& who, time_point now);
  /// Whether no one can get from one to the other now.
  bool is_shut(simulated_process& a, simulated_process& b) const {
    return cut_.count(way(a, b)) + stalled_.count(way(a, b)) > 0;
  }
  /// All that was ever said.
  uint64_t bytes() const { return bytes_; }
  /// Whether there is a connection between the two that no end has closed.
  bool connected(const simulated_process& a, const simulated_process& b) const;

private:
  struct packet {
    time_point arrives;
    std::vector<char> bytes;
    bool last = false; ///< The connection is closed.
  };
  struct end {
    simulated_process* who = nullptr;
    caf::io::connection_handle handle;
    std::deque<packet> coming; ///< To this end.
    bool open = true;
  };
  struct connection {
    end ends[2];
    bool broken = false; ///< Nothing that is written now arrives.
  };
  using pair_of_processes = std::pair<const simulated_process*, const simulated_process*>;

  static pair_of_processes way(const simulated_process& a, const simulated_process& b) { return std::minmax(&a, &b); }
  static bool joins(const connection& x, const simulated_process& a, const simulated_process& b) {
    return way(*x.ends[0].who, *x.ends[1].who) == way(a, b);
  }

  caf::timespan draw_delay();
  void send(end& to, time_point now, std::vector<char> bytes, bool last = false);
  void arrive(end& at, packet what);
  /// The end that hears of something next; nullptr: none.
  end* next_to_hear();
  bool can_hear(const connection& x, const end& at) const;

  std::mt19937_64& random_;
  options options_;
  uint64_t bytes_ = 0;
  std::list<connection> connections_;
  std::set<pair_of_processes> stalled_;
  std::set<pair_of_processes> cut_;
  int64_t handles_ = 0;
};

} // namespace ringmaster::test
