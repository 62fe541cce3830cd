#pragma once

#include "actors/communicators/member_watch.hpp"

#include <optional>
#include <set>

namespace ringmaster {

class coordinator_state;

/// Finds devices that hang and processes that are silent, also where nothing is in flight: the coordinator asks all
/// devices every `idle_interval`, with one message for each process, and more often (`suspicion.interval`) as long as
/// one of them owes an answer. The rule is that of communicators (`watch`). A device that is given up is ended, and all
/// its communicators hear of it.
class liveness_watch {
public:
  explicit liveness_watch(coordinator_state& coordinator) : coordinator_(coordinator) {}

  void start();
  /// The timer of this number has expired. Returns whether it was this object's.
  bool tick(uint64_t number);
  void on_report(const proto::ProgressReport& x);
  void on_progress(const proto::Progress& x);
  void gone(device_id device, const device_handle& handle);

private:
  void look();
  void ask();
  void wait(caf::timespan time);

  coordinator_state& coordinator_;
  std::optional<member_watch> watch_;
  std::set<device_id> watched_;
  std::set<device_id> owing_; ///< They have not answered the latest request.
  uint64_t latest_request_ = 0;
  uint64_t timer_ = 0;
};

} // namespace ringmaster
