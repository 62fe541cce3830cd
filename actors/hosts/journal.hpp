#pragma once

#include "messages/interfaces.hpp"
#include "messages/journal.pb.h"
#include "runtime/journal/journal_health.hpp"
#include "runtime/journal/journal_store.hpp"

#include <caf/actor_clock.hpp>
#include <caf/timespan.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace ringmaster {

struct journal_options {
  std::shared_ptr<journal_health> health = std::make_shared<journal_health>();
  std::shared_ptr<journal_store> store; ///< Not null, and handed over: the actor is its only user from now on.
  caf::timespan sync_interval = std::chrono::milliseconds{100}; ///< With journal_sync::interval; between retries, too.
  caf::timespan look_interval = std::chrono::seconds{1};    ///< Between two looks whether its files are still in place.
  caf::timespan write_delay = std::chrono::milliseconds{1}; ///< A record waits so long for others, to be written as one
                                                            ///< batch; with journal_sync::always, or in memory, it
                                                            ///< does not.
  size_t batch_records_max = 1024;
  size_t queue_records_max = 65536;   ///< Not yet written because writing fails; what comes then is lost, and counted.
  uint32_t tail_records_max = 10'000; ///< In one answer.
};

struct journal_state {
  static inline const char* name = "journal";

  /// Writes what is left.
  ~journal_state();

  /// Appends all that is queued.
  caf::error write();
  /// Has the store look after its files, and puts on record what it has lost.
  caf::error look_after_store();
  /// Writes, then makes it durable.
  caf::error sync();

  journal_options options;
  std::vector<proto::Record> queue;
  bool flush_sent = false; ///< A message that will have the queue written is on its way.
  caf::actor_clock::time_point flush_due;
  caf::actor_clock::time_point look_due = caf::actor_clock::time_point::max();
  bool sync_planned = false; ///< One that comes at `sync_due` is on its way.
  caf::actor_clock::time_point sync_due;
  uint64_t written = 0;     ///< Records since the start.
  uint64_t synced = 0;      ///< Of these.
  uint64_t lost = 0;        ///< Since the last answer to a flush request.
  caf::error write_failure; ///< What the latest attempt said; none: it worked.
  caf::error sync_failure;
  bool leaving = false;
};

/// Collects records for `write_delay`, then appends them in one batch: while writing works, a killed process loses no
/// more than these and what is still in the mailbox. Spawn it detached where the store waits for the disk. A failing
/// disk does not end it. At its end, unless it is killed, it writes all that was sent to it before.
journal_actor::behavior_type journal(journal_actor::stateful_pointer<journal_state> self, journal_options options);

/// The latest records of this process's journal, for the log of a process that aborts because an invariant is broken:
/// they may not have reached the disk. Thread-safe.
class flight_recorder {
public:
  static constexpr size_t records_max = 32;

  /// Of the whole process. Its records are reported before the process aborts.
  static flight_recorder& instance();

  flight_recorder();
  ~flight_recorder();

  void note(const proto::Record& record);
  /// A line for each record, the oldest first; empty if there is none.
  std::string text() const;

private:
  struct ring;
  std::unique_ptr<ring> ring_;
};

} // namespace ringmaster
