#pragma once

#include "messages/collective.pb.h"
#include "messages/ids.hpp"
#include "runtime/health/suspicion.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ringmaster {

/// How long a process that is asked again and again has not answered. Pure: the caller passes the time in.
class silence {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using duration = std::chrono::nanoseconds;

  void on_request(time_point now) {
    if (!since_)
      since_ = now;
  }
  /// Returns how long it had been silent.
  duration on_answer(time_point now) {
    auto result = length(now);
    since_.reset();
    return result;
  }
  /// The observer itself was paused for so long, and could not hear an answer.
  void excuse(duration pause, time_point now) {
    if (since_)
      since_ = std::min(now, *since_ + std::chrono::duration_cast<time_point::duration>(pause));
  }
  duration length(time_point now) const {
    ensure(!since_ || now >= *since_, "time does not run backwards");
    return since_ ? now - *since_ : duration{};
  }

private:
  std::optional<time_point> since_; ///< The first request without an answer after it.
};

/// Devices hang one by one. If more than half of them answer late at once, the hosts or their network are overloaded:
/// to give them up would leave none. Those that are late then get ten times as long, also when others have caught up
/// meanwhile: on such a host one is always the last. Pure: the caller passes the time in.
class overload {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using duration = std::chrono::nanoseconds;

  /// `late_after`: when one answer is late.
  explicit overload(duration late_after) : patience_(10 * late_after) {}

  struct verdict {
    std::set<device_id> excused; ///< Suspects that are not given up for now.
    bool began = false;          ///< The excuse starts with this look.
  };
  /// Judges the suspects among the watched devices; call it at each look.
  verdict look(const std::set<device_id>& suspects, size_t watched, time_point now) {
    ensure(suspects.size() <= watched, "only devices that are watched are suspected");
    std::erase_if(late_, [&](auto& x) { return suspects.count(x.first) == 0; });
    verdict result;
    if (2 * suspects.size() > watched) {
      result.began = late_.empty();
      for (auto device : suspects)
        late_.emplace(device, now);
    }
    for (auto& [device, since] : late_)
      if (now - since < patience_)
        result.excused.insert(device);
    ensure(result.excused.size() <= suspects.size(), "only suspects are excused");
    return result;
  }

  duration patience() const { return patience_; }

private:
  duration patience_;
  std::map<device_id, time_point> late_; ///< Since when they have been late, together with most, without a pause.
};

/// Watches the devices of a communicator while operations run: which answers are late, what each device is doing, and
/// when one last made progress. Devices of a process are asked together. A device that is late while its process
/// answers hangs; if the whole process is silent it may only have paused (stopped, swapped out, moved to another
/// machine), and has until `pause_max`. Time in which the observer itself did not look counts for no process. Pure: the
/// caller passes the time in and sends the requests.
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
  void remove(device_id device);

  /// An operation has made progress.
  void note_progress(time_point now) { last_progress_ = now; }
  time_point last_progress() const { return last_progress_; }
  bool stalled(time_point now) const { return now - last_progress_ > stalled_after_; }
  duration stalled_after() const { return stalled_after_; }

  struct verdict {
    std::vector<std::pair<device_id, proto::Suspicion>> suspects; ///< To be given up, with the reason.
    std::string overload; ///< For people: most devices are late, and are excused from now on. Else empty.
  };
  /// Judges these devices; call it at each tick: after `interval`, or at the time of `expect_look`.
  void expect_look(time_point when) { next_look_ = when; }
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

  void notice_own_pause(time_point now);
  /// None: not to be given up.
  std::optional<proto::Suspicion> judge(watched& x, time_point now);

  suspicion::options options_;
  duration stalled_after_;
  overload overload_;
  std::map<device_id, watched> devices_;
  std::map<process_number, silence> processes_;
  uint64_t requests_ = 0;
  time_point last_progress_;
  std::optional<time_point> next_look_;
};

} // namespace ringmaster
