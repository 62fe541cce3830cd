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
/// with its nodes, not with its devices; and a node that answers for nobody still shows that it lives. Pure.
class progress_desk {
public:
  /// Of a request: the communicator, and its number for the request.
  using key = std::pair<communicator_id, uint64_t>;

  /// `devices`: those who will be asked. A report: there is nobody to wait for.
  std::optional<proto::ProgressReport> ask(key request, std::set<device_id> devices);
  /// A device has spoken. A report: it is to be sent.
  std::optional<proto::ProgressReport> on_progress(const proto::Progress& x);
  /// The limit has passed. A report: of those who have spoken, maybe nobody; none: it has been sent.
  std::optional<proto::ProgressReport> on_limit(key request);
  /// Whoever has not spoken will not be heard.
  void forget(key request) { open_.erase(request); }

  /// Whether anybody is still waited for.
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
