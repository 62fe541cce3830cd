#pragma once

#include "messages/collective.pb.h"
#include "messages/ids.hpp"
#include "runtime/health/overload.hpp"
#include "runtime/health/suspicion.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ringmaster {

/// Watches the devices of a communicator while they have something to do: whose answers are late, what each says that
/// it does, and when anybody has last moved. Pure: the caller passes the time in and sends the requests.
class watch {
public:
  using time_point = suspicion::time_point;
  using duration = suspicion::duration;

  /// `stalled_after`: without any progress of anybody.
  watch(suspicion::options opts, duration stalled_after)
    : options_(opts), stalled_after_(stalled_after), overload_(opts.late_after) {}

  void add(device_id device) { devices_.try_emplace(device, watched{suspicion{options_}, {}}); }
  void remove(device_id device) { devices_.erase(device); }

  /// Something has happened that takes an operation on.
  void note_progress(time_point now) { last_progress_ = now; }
  time_point last_progress() const { return last_progress_; }
  bool stalled(time_point now) const { return now - last_progress_ > stalled_after_; }
  duration stalled_after() const { return stalled_after_; }

  struct verdict {
    std::vector<std::pair<device_id, std::string>> suspects; ///< To be given up, with the reason.
    std::string overload; ///< What to tell people: most are late, and an excuse has begun. Else empty.
  };
  /// Judges those of `devices`; to be called at each tick.
  verdict look(const std::vector<device_id>& devices, time_point now);
  /// A request goes out to these. Returns its number.
  uint64_t on_request(const std::vector<device_id>& devices, time_point now);
  void on_answer(const proto::Progress& x, time_point now);
  /// In its own words; empty: no word yet.
  const std::string& doing(device_id device) const;

private:
  struct watched {
    suspicion suspect;
    proto::Progress latest; ///< Its last answer.
  };

  suspicion::options options_;
  duration stalled_after_;
  overload overload_;
  std::map<device_id, watched> devices_;
  uint64_t requests_ = 0;
  time_point last_progress_;
};

} // namespace ringmaster
