#pragma once

#include "messages/cluster.pb.h"
#include "messages/ids.hpp"

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ringmaster {

/// A rank has left a group that had come together.
struct rank_departure {
  std::string group;
  uint32_t rank = 0;
  bool finalized = false; ///< It has called Finalize; else it was lost before all others had left.

  friend bool operator==(const rank_departure&, const rank_departure&) = default;
};

/// Processes that become the ranks of a communicator, and leave it together. Each request has a number until it is
/// answered; the desk decides which requests are answered, and how.
///
///   gathering --all have come, communicator made--> working --all have left or are lost--> gone
///       \_ a limit passes, a rank is lost or will not come: gone; the error names the missing ranks
class rendezvous_desk {
public:
  using number = uint64_t;
  using time_point = std::chrono::steady_clock::time_point;
  static constexpr auto absent_kept = std::chrono::seconds{60};

  /// Answer all of these.
  struct answer {
    std::vector<number> to;
    caf::error problem;
  };

  /// All ranks have come: make a communicator of these devices, then call `formed`.
  struct complete_group {
    std::string name;
    std::vector<device_id> devices; ///< In rank order.
  };

  /// Ranks of a group that have not come.
  struct missing_ranks {
    std::string text; ///< "rank 2 of 3 of "world""
    size_t count = 0;
  };

  /// All have left: destroy the communicator, then answer these.
  struct left_group {
    communicator_id communicator;
    std::vector<number> to;
  };

  /// A rank has come. None: others are missing. Errors: invalid_argument for an impossible rank and for sizes that
  /// differ; in_use if the rank has come already. After an error the number is not waiting.
  caf::expected<std::optional<complete_group>> arrived(const proto::RendezvousRequest& x, number who,
                                                       time_point now = {});
  /// The communicator of a complete group was made, or could not be. Returns the requests to answer.
  std::vector<number> formed(const std::string& name, const caf::expected<communicator_id>& communicator);
  /// The coordinator was restarted: this group had formed. The ranks' devices, in rank order.
  void restore(const std::string& name, const std::vector<device_id>& ranks, communicator_id communicator);
  /// The communicator of a group that has formed with this rank and device; none: it has not.
  std::optional<communicator_id> formed_with(const proto::RendezvousRequest& x) const;
  /// A rank has finished. None: others have not. A rank of a group that is gone may leave at once.
  std::optional<left_group> leaves(const proto::FinalizeRequest& x, number who);
  /// A device is lost, and its rank with it: a gathering group fails, and the rank counts as having left a working one.
  std::vector<answer> lost(device_id device, const std::string& cause);
  /// The process of a rank has ended. A gathering group fails, and so do ranks that come within `absent_kept`, unless
  /// the rank itself comes. For a group that has come together this changes nothing.
  std::vector<answer> absent(const proto::RankAbsentRequest& x, time_point now = {});
  /// Of ranks since the last call, in order.
  std::vector<rank_departure> take_departures() { return std::exchange(departures_, {}); }
  /// A group that has no rank left, after a loss.
  std::optional<left_group> next_left();
  /// The ranks that a gathering group waits for. None: it has come together, or another rank has waited longer.
  std::optional<missing_ranks> awaited_by(number who) const;
  /// The limit has passed. None: the request has been answered.
  std::optional<answer> expired(number who, const std::string& limit);

private:
  struct member {
    device_id device;
    number waits = 0; ///< 0: for nothing.
    bool is_here = false;
    bool has_left = false;
  };

  struct rank_group {
    std::vector<member> ranks;
    std::optional<communicator_id> communicator;
    bool is_restored = false; ///< Ranks that had no answer before the coordinator was restarted ask again.
  };
  using groups = std::map<std::string, rank_group>;
  using rank_of_group = std::pair<std::string, uint32_t>;

  static missing_ranks missing_of(const std::string& name, const rank_group& x);
  static std::vector<number> waiting(const rank_group& x);
  std::optional<left_group> take_if_left(groups::iterator x);

  caf::error missing(const rank_of_group& who, size_t world_size, const std::string& cause) const;

  /// A rank that will not come.
  struct absence {
    std::string cause;
    time_point until;
  };

  groups groups_;
  std::map<rank_of_group, absence> absent_;
  std::set<std::string> have_formed_; ///< Names of groups, some of the latest.
  std::vector<rank_departure> departures_;
};

} // namespace ringmaster
