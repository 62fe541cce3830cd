#pragma once

#include "messages/collective.pb.h"
#include "messages/ids.hpp"

#include <map>
#include <optional>
#include <set>
#include <utility>

namespace ringmaster {

/// What a node answers for its devices when a communicator asks how far they are: one message for all of them, when all
/// have spoken or when a limit has passed, and then one for each that comes late. So a communicator's requests grow
/// with its nodes, not with its devices; and a node that reports no device still shows that it lives. Pure.
class progress_desk {
public:
  /// Of a request: the communicator, and its number for the request.
  using key = std::pair<communicator_id, uint64_t>;

  /// `devices`: those that will be asked. Returns a report if there are none.
  std::optional<proto::ProgressReport> ask(key request, std::set<device_id> devices);
  /// A device has spoken. A report: it is to be sent.
  std::optional<proto::ProgressReport> on_progress(const proto::Progress& x);
  /// The limit has passed. Returns a report of the devices that have answered, maybe none; nothing if it has been sent.
  std::optional<proto::ProgressReport> on_limit(key request);
  /// Devices that have not answered are left out.
  void forget(key request) { open_.erase(request); }

  /// Whether an answer is still awaited.
  bool is_open(key request) const { return open_.count(request) != 0; }

private:
  struct round {
    std::set<device_id> silent;
    proto::ProgressReport report;
    bool reported = false;
  };
  std::map<key, round> open_;
};

} // namespace ringmaster
