#pragma once

#include "messages/interfaces.hpp"
#include "messages/metadata.pb.h"
#include "runtime/metadata/metadata_store.hpp"

#include <caf/error.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ringmaster {

class coordinator_state;

/// Keeps in the coordinator's store what it must find again when it is restarted. The changes of one message are one
/// transaction, and those that come while one is written are the next. Answers that depend on a change wait until it is
/// stored. A store that fails is tried again; meanwhile the coordinator goes on, and says so, or ends, as configured.
class metadata_log {
public:
  explicit metadata_log(coordinator_state& coordinator) : coordinator_(coordinator) {}
  metadata_log(const metadata_log&) = delete;
  metadata_log& operator=(const metadata_log&) = delete;
  /// Writes what is left, and the highest ids that were given.
  ~metadata_log();

  /// Without a store nothing is kept, and nothing waits.
  void start(std::shared_ptr<metadata_store> store, const metadata_actor& writer);
  bool is_kept() const { return static_cast<bool>(writer_); }

  void put(std::string key, const google::protobuf::MessageLite& value);
  void erase(std::string key);
  /// Calls `then` when all changes so far are stored, or cannot be: at once if none is missing.
  void when_stored(std::function<void()> then);
  /// A message has been handled: writes what it has changed.
  void flush();
  /// Looks whether the store is still there, also where nothing changes.
  void look_after();
  /// Whether this is the number of its next try.
  bool awaits(uint64_t number) const { return number != 0 && number == try_again_; }
  /// Tries again, if this is the number of the try. Returns whether it was.
  bool expire(uint64_t number);

  /// Why changes are missing in the store; none: none is.
  const caf::error& trouble() const { return trouble_; }

private:
  void write();
  void written(const caf::error& problem);

  coordinator_state& coordinator_;
  metadata_actor writer_;
  proto::StoreChanges next_, under_way_;
  std::vector<std::function<void()>> waits_for_next_, waits_;
  bool is_writing_ = false;
  uint64_t try_again_ = 0; ///< Number of the timer; 0: none.
  caf::error trouble_;
};

/// The writer: a thread of its own where the store waits for a disk or a network.
metadata_actor spawn_metadata_writer(caf::actor_system& system, std::shared_ptr<metadata_store> store);

} // namespace ringmaster
