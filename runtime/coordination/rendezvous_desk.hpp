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

/// That a rank of a group which has come together is no longer one of it.
struct rank_departure {
  std::string group;
  uint32_t rank = 0;
  bool finalized = false; ///< It has said so itself; else it was lost while others had not left.

  friend bool operator==(const rank_departure&, const rank_departure&) = default;
};

/// Processes that become the ranks of a communicator, and leave it together. The coordinator's; it is told who asks,
/// and tells what to answer. Who asks has a number, until it is answered.
///
///   gathering --all have come, communicator made--> working --all have left or are lost--> gone
///       \_ a limit passes, one is lost or will not come: gone, with the names of those that are missing
class rendezvous_desk {
public:
  using number = uint64_t;
  using time_point = std::chrono::steady_clock::time_point;
  static constexpr auto absent_kept = std::chrono::seconds{60};

  /// What all of these are to be told.
  struct answer {
    std::vector<number> to;
    caf::error problem;
  };

  /// All ranks have come: a communicator of these is to be made, and `formed` told.
  struct complete_group {
    std::string name;
    std::vector<device_id> devices; ///< In rank order.
  };

  /// Ranks of a group that have not come.
  struct missing_ranks {
    std::string text; ///< "rank 2 of 3 of "world""
    size_t count = 0;
  };

  /// All have left: the communicator is to end, then these are to be told.
  struct left_group {
    communicator_id communicator;
    std::vector<number> to;
  };

  /// A rank has come. None: others are missing. Errors: invalid_argument for a rank that there cannot be, and for sizes
  /// that differ; in_use where the rank is there already. Who gets an error is answered.
  caf::expected<std::optional<complete_group>> arrived(const proto::RendezvousRequest& x, number who,
                                                       time_point now = {});
  /// The communicator of a complete group is there, or why it is not. Whom to tell.
  std::vector<number> formed(const std::string& name, const caf::expected<communicator_id>& communicator);
  /// A rank has done its part. None: others have not. A group that is gone needs nobody's leaving.
  std::optional<left_group> leaves(const proto::FinalizeRequest& x, number who);
  /// The device is lost, and with it a rank: a group that gathers cannot come together, one that works is left by it.
  std::vector<answer> lost(device_id device, const std::string& cause);
  /// The process of a rank has ended. Where its group gathers it cannot come together, and whoever comes within
  /// `absent_kept` hears so, too: unless the rank comes. Of a group that has come together it says nothing new.
  std::vector<answer> absent(const proto::RankAbsentRequest& x, time_point now = {});
  /// Of ranks since the last call, in order.
  std::vector<rank_departure> take_departures() { return std::exchange(departures_, {}); }
  /// Groups that nobody is in any more, after a loss.
  std::optional<left_group> next_left();
  /// The ranks for which a group that gathers waits. None: it has come together, or another rank waits longer.
  std::optional<missing_ranks> awaited_by(number who) const;
  /// The limit has passed. None: it has been answered.
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
