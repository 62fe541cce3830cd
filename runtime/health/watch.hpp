#pragma once

#include "messages/collective.pb.h"
#include "messages/ids.hpp"
#include "runtime/health/overload.hpp"
#include "runtime/health/silence.hpp"
#include "runtime/health/suspicion.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ringmaster {

/// Watches the devices of a communicator while operations run: which answers are late, what each device is doing, and
/// when one last made progress. Devices of a process are asked together. A device that is late while its process
/// answers hangs; if the whole process is silent it may only have paused (stopped, swapped out, moved to another
/// machine), and has until `pause_max`. Pure: the caller passes the time in and sends the requests.
class watch {
public:
  using time_point = suspicion::time_point;
  using duration = suspicion::duration;
  /// Devices with the same number are asked together; the caller chooses the numbers.
  using process_number = uint32_t;

  /// `stalled_after`: without progress of any device.
  watch(suspicion::options opts, duration stalled_after)
    : options_(opts), stalled_after_(stalled_after), overload_(opts.late_after) {}

  /// `process`: none if the device is asked by itself.
  void add(device_id device, std::optional<process_number> process = std::nullopt) {
    devices_.try_emplace(device, watched{suspicion{options_}, {}, process});
  }
  void remove(device_id device) { devices_.erase(device); }

  /// An operation has made progress.
  void note_progress(time_point now) { last_progress_ = now; }
  time_point last_progress() const { return last_progress_; }
  bool stalled(time_point now) const { return now - last_progress_ > stalled_after_; }
  duration stalled_after() const { return stalled_after_; }

  struct verdict {
    std::vector<std::pair<device_id, std::string>> suspects; ///< To be given up, with the reason.
    std::string overload; ///< For people: most devices are late, and are excused from now on. Else empty.
  };
  /// Judges these devices; call it at each tick.
  verdict look(const std::vector<device_id>& devices, time_point now);
  /// A request goes out to these. Returns its number.
  uint64_t on_request(const std::vector<device_id>& devices, time_point now);
  void on_answer(const proto::Progress& x, time_point now);
  /// The process has answered, for any of its devices. Call it before `on_answer` for them.
  void on_report(process_number process, time_point now);
  /// What is known of a device.
  struct knowledge {
    const proto::Progress* latest = nullptr; ///< Its last answer; null: none yet.
    duration age{};                          ///< Of that.
    suspicion::record answers;
    duration silent{}; ///< How long its process has owed an answer.
  };
  knowledge known(device_id device, time_point now) const;

private:
  struct watched {
    suspicion suspect;
    proto::Progress latest; ///< Its last answer.
    std::optional<process_number> process;
    std::optional<time_point> answered_at = std::nullopt;
  };

  void observe(time_point now);
  /// Empty: not to be given up.
  std::string judge(watched& x, time_point now);

  suspicion::options options_;
  duration stalled_after_;
  overload overload_;
  std::map<device_id, watched> devices_;
  std::map<process_number, silence> processes_;
  uint64_t requests_ = 0;
  time_point last_progress_;
  std::optional<time_point> last_look_;
};

} // namespace ringmaster
