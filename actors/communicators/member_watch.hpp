#pragma once

#include "messages/interfaces.hpp"
#include "runtime/health/clock_estimates.hpp"
#include "runtime/health/slow_devices.hpp"
#include "runtime/health/traffic.hpp"
#include "runtime/health/watch.hpp"

#include <map>
#include <optional>
#include <vector>

namespace ringmaster {

/// What is learned from the devices' answers to progress requests: which are late, which are slow, how many bytes they
/// receive, and the offsets of their nodes' clocks. Of a communicator's members, and of all devices for the
/// coordinator. Pure: the caller passes the time in.
class member_watch {
public:
  using time_point = watch::time_point;

  member_watch(const suspicion::options& suspect, watch::duration stalled_after) : liveness_(suspect, stalled_after) {}

  /// Devices with one relay are in one process and asked together.
  void add(device_id device, const device_handle& handle);
  /// Its later reports of received bytes start from 0.
  void forget(device_id device) {
    traffic_.forget(device);
    slow_.forget(device);
  }
  /// It is in the cluster no more.
  void remove(device_id device, const device_handle& handle);

  /// A progress request is sent to these. Returns its number.
  uint64_t asked(const std::vector<device_id>& devices, time_point now, uint64_t unix_ns);
  void on_progress(const proto::Progress& x, time_point now);
  /// All answers of a process. `is_local`: of this process, whose clock is ours. Returns what is worth a record.
  std::optional<proto::NodeClock> on_node_report(const caf::actor_addr& relay, const proto::ProgressReport& x,
                                                 bool is_local, time_point now, uint64_t unix_ns);
  void on_report(const proto::RankReport& x, time_point now);
  /// Bytes that no rank reports.
  void note_moved(const std::string& route, uint64_t bytes, time_point now) { traffic_.moved(route, bytes, now); }
  void note_progress(time_point now);
  void expect_look(time_point when) { liveness_.expect_look(when); }
  watch::verdict look(const std::vector<device_id>& devices, time_point now) { return liveness_.look(devices, now); }
  std::vector<slow_devices::change> look_for_slow(const std::vector<device_id>& devices, time_point now) {
    return slow_.look(devices, now);
  }

  const watch& liveness() const { return liveness_; }
  const traffic& received() const { return traffic_; }
  const slow_devices& slow() const { return slow_; }

private:
  struct known_process {
    watch::process_number number = 0;
    size_t devices = 0;
  };

  watch liveness_;
  traffic traffic_;
  slow_devices slow_;
  clock_estimates clocks_;                             ///< Of other processes' nodes.
  std::map<caf::actor_addr, known_process> processes_; ///< By relay.
  watch::process_number last_process_ = 0;
};

} // namespace ringmaster
