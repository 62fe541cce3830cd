#pragma once

#include "messages/ids.hpp"
#include "messages/journal.pb.h"
#include "runtime/journal/record_filter.hpp"

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

/// When appended records are synced to disk. They always survive the end of the process; this policy is about the end
/// of the machine.
enum class journal_sync : uint8_t {
  always,   ///< Before `append` returns.
  interval, ///< When the owner calls `flush`; the journal actor does so at intervals.
  never     ///< When the operating system writes them, and at a JournalFlushRequest.
};

/// Errors: invalid_argument, naming what is allowed.
caf::expected<journal_sync> parse_journal_sync(std::string_view text);

/// Records that were acknowledged and are no longer in the journal.
struct journal_loss {
  uint64_t records = 0;
  std::string cause; ///< A sentence without its full stop.
};

/// The operation log: a timeline of records with indices from 1, without gaps, and the state of each operation. It
/// keeps the latest `retain_records` records. One owner; not thread-safe.
class journal_store {
public:
  struct options {
    std::filesystem::path dir; ///< Created if missing. Empty: in memory only.
    journal_sync sync = journal_sync::interval;
    uint64_t retain_records = 1'000'000; ///< > 0
    uint64_t now_ns = 0;                 ///< Unix time; stored in a new journal.
  };

  /// Returns false to stop.
  using record_visitor = std::function<bool(uint64_t index, proto::Record& record)>;

  /// Opens the journal for writing, creates it if there is none, and trims it to `retain_records`. Errors name the
  /// directory: invalid_argument (a database that is no journal, retain_records 0), io_error (cannot be created or
  /// read), in_use (with the process that holds it), wrong_version (with both versions), corrupt (with the database's
  /// reason; also if durable records are missing).
  static caf::expected<std::unique_ptr<journal_store>> open(const options& opts);

  /// Opens the journal as it is now, whether its owner is alive or was killed. Changes nothing; `append` and `flush`
  /// fail. Errors: those of `open`, and invalid_argument if there is no journal.
  static caf::expected<std::unique_ptr<journal_store>> open_read_only(const std::filesystem::path& dir);

  virtual ~journal_store();

  /// Adds all records to the timeline and to their operations, or none. Errors: io_error; the next call must then start
  /// with the same records. It finds out which of them reached the disk and does not add them twice.
  virtual caf::error append(std::span<const proto::Record> records) = 0;
  /// Returns when all appended records are durable. Does nothing for a journal in memory.
  virtual caf::error flush() = 0;
  /// Checks that the open files are still in the directory. If they were removed or moved, starts a new journal there,
  /// which continues the ids of the old one. Errors: those of `open`; the next call tries again. Does nothing for a
  /// journal in memory.
  virtual caf::error keep_in_place() { return caf::none; }
  /// The records lost since the last call.
  virtual std::optional<journal_loss> take_loss() { return std::nullopt; }

  /// The timeline's bounds, and the highest ids it ever contained.
  virtual const proto::JournalState& state() const = 0;
  /// The state of one operation, if it has records. Errors: corrupt, io_error.
  virtual caf::expected<std::optional<proto::OperationState>> operation(operation_key key) const = 0;
  /// All operations that have records, by communicator and sequence. Errors: corrupt, io_error.
  virtual caf::expected<std::vector<proto::OperationState>> operations() const = 0;

  /// Visits the records that `filter` selects, oldest first. Errors: corrupt (a gap, an unreadable record), io_error,
  /// invalid_argument (no such kind). After an error, records were left out.
  caf::error read(const record_filter& filter, const record_visitor& visit) const;
  /// The same in a vector.
  caf::expected<std::vector<proto::Record>> read(const record_filter& filter = {}) const;
  /// The latest `count` records, oldest first.
  caf::expected<std::vector<proto::Record>> tail(uint64_t count) const;
  /// history_digest over all records.
  caf::expected<uint64_t> digest() const;

  journal_sync sync() const noexcept { return sync_; }
  /// False for a journal in memory, whose calls never block.
  virtual bool waits_for_disk() const noexcept { return true; }

protected:
  explicit journal_store(journal_sync sync) : sync_(sync) {}

  enum class direction : uint8_t { oldest_first, newest_first };
  /// Visits the records with indices above `after`, and verifies that none is missing.
  virtual caf::error scan(direction towards, uint64_t after, const record_visitor& visit) const = 0;

private:
  caf::expected<bool> has_outcome(const proto::Record& record, gpu_sim::Status outcome) const;
  caf::error read_last(const record_filter& filter, const record_visitor& visit) const;
  caf::expected<bool> selects(const record_filter& filter, const proto::Record& record) const;

  journal_sync sync_;
};

/// A journal that keeps the latest records in memory, for tests and demonstrations without a disk.
std::unique_ptr<journal_store> make_memory_journal(const journal_store::options& opts);

/// The outcome that a record has itself: of a command, of refused calls, of an aborted communicator. None for a record
/// of an operation, whose outcome is the operation's.
std::optional<gpu_sim::Status> outcome_of(const proto::Record& record);

/// Updates the state of an operation, which is empty at first, with its next record: the timeline's number `index`.
/// The record must belong to an operation (operation_of).
void advance(proto::OperationState& state, const proto::Record& record, uint64_t index);

/// Counts `record` as the timeline's next one and keeps the highest ids.
void advance(proto::JournalState& state, const proto::Record& record);

/// The state of a timeline without records.
proto::JournalState empty_journal();

} // namespace ringmaster
