#pragma once

#include "messages/ids.hpp"
#include "messages/journal.pb.h"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace ringmaster {

/// How far another clock is ahead of ours, from a request and its answer: whatever the delays, the answer was given
/// between the two moments (Cristian, "Probabilistic clock synchronization", 1989).
struct clock_offset {
  int64_t offset_ns = 0;
  uint64_t error_ns = 0; ///< The true offset differs by at most this.

  static clock_offset of(uint64_t asked_ns, uint64_t theirs_ns, uint64_t answered_ns) {
    auto half = (answered_ns - asked_ns + 1) / 2;
    return {static_cast<int64_t>(theirs_ns - asked_ns - half), half};
  }
};

/// How far the clocks of nodes are ahead of ours, from the progress requests that they answer. Only estimates worth a
/// record are returned. Pure: the caller passes the wall clock's time in.
class clock_estimates {
public:
  /// A request of this number goes out.
  void asked(uint64_t number, uint64_t now_ns);
  /// The node answers it, at `theirs_ns` by its own clock. None: the known estimate is as good.
  std::optional<proto::NodeClock> answered(node_id node, uint64_t number, uint64_t theirs_ns, uint64_t now_ns);

private:
  struct estimate {
    uint64_t error_ns = 0;
    uint64_t since_ns = 0;
  };

  std::deque<std::pair<uint64_t, uint64_t>> requests_; ///< Number and time of the latest.
  std::map<node_id, estimate> best_;
};

} // namespace ringmaster
