#pragma once

#include "actors/communicators/member_watch.hpp"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ringmaster {

class coordinator_state;

/// Whether the process of a node that does not answer the coordinator lives: other nodes ask it, each over its own
/// connection (the indirect probe of SWIM: Das, Gupta, Motivala, 2002). A process that was killed or stopped answers
/// none of them, one behind a cut link answers all. `then` is called once, within 100 ms; with false at once if no
/// other node can be asked.
void probe_by_others(coordinator_state& coordinator, const std::string& node, std::function<void(bool lives)> then);

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
  /// The whole process of these has been silent for too long: they are given up when it is known whether it lives.
  void doubt(const std::string& node, std::vector<std::pair<device_id, proto::Suspicion>> suspects);
  void ask();
  void wait(caf::timespan time);

  coordinator_state& coordinator_;
  std::optional<member_watch> watch_;
  std::set<device_id> watched_;
  std::set<device_id> owing_;    ///< They have not answered the latest request.
  std::set<std::string> probed_; ///< Nodes that others are asking.
  uint64_t latest_request_ = 0;
  uint64_t timer_ = 0;
};

} // namespace ringmaster
