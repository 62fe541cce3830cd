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

/// When appended records reach the disk for good. In any case they survive the end of the process at once; this is
/// about the end of the machine.
enum class journal_sync : uint8_t {
  always,   ///< Before `append` returns.
  interval, ///< When the owner calls `flush`, which the journal actor does at intervals.
  never     ///< When the system likes, and with JournalFlushRequest.
};

/// Errors: invalid_argument, naming what is allowed.
caf::expected<journal_sync> parse_journal_sync(std::string_view text);

/// Records that were acknowledged and are no longer in the journal.
struct journal_loss {
  uint64_t records = 0;
  std::string cause; ///< Why, as a sentence without its full stop.
};

/// The operation log: a timeline of records with indices from 1, without gaps, and the state of each operation.
/// Of all records the latest `retain_records` are kept. One owner; not thread-safe.
class journal_store {
public:
  struct options {
    std::filesystem::path dir; ///< Created if missing. Empty: in memory only, gone with this object.
    journal_sync sync = journal_sync::interval;
    uint64_t retain_records = 1'000'000; ///< > 0
    uint64_t now_ns = 0;                 ///< Wall clock, Unix time: noted in a new journal.
  };

  /// Returns false to stop.
  using record_visitor = std::function<bool(uint64_t index, proto::Record& record)>;

  /// Opens the journal for writing, a new one where there is none, and trims it to `retain_records`.
  /// Errors, each naming the directory: invalid_argument (a database of somebody else, retain_records 0),
  /// io_error (cannot be created or read), in_use (with the process that holds it), wrong_version (with both versions),
  /// corrupt (with the database's reason; also where records that were durable are missing).
  static caf::expected<std::unique_ptr<journal_store>> open(const options& opts);

  /// Opens it as it is now, be its process alive or killed. Changes and creates nothing; `append` and `flush` fail.
  /// Errors: as `open`, with invalid_argument where there is no journal.
  static caf::expected<std::unique_ptr<journal_store>> open_read_only(const std::filesystem::path& dir);

  virtual ~journal_store();

  /// Adds the records to the timeline and to their operations, all or none. Errors: io_error; then the next call must
  /// begin with the same records. It finds out which of them did reach the disk, and adds those no second time.
  virtual caf::error append(std::span<const proto::Record> records) = 0;
  /// Returns when all that was appended is durable. In memory nothing is, and nothing fails.
  virtual caf::error flush() = 0;
  /// Looks whether the files that are written to are still those in the directory. Where they were removed or moved
  /// away, starts a new journal there, which goes on with the ids of the old one. Errors: as `open`; then the next call
  /// tries again. In memory there is nothing to look at.
  virtual caf::error keep_in_place() { return caf::none; }
  /// What has been lost since the last call.
  virtual std::optional<journal_loss> take_loss() { return std::nullopt; }

  /// The timeline's bounds, and the highest ids that it ever named.
  virtual const proto::JournalState& state() const = 0;
  /// What is known of one operation. Errors: corrupt, io_error.
  virtual caf::expected<std::optional<proto::OperationState>> operation(operation_key key) const = 0;
  /// All operations that have records, by communicator and sequence. Errors: corrupt, io_error.
  virtual caf::expected<std::vector<proto::OperationState>> operations() const = 0;

  /// Visits what `filter` selects, oldest first. Errors: corrupt (a gap, an unreadable record), io_error,
  /// invalid_argument (no such kind). After an error what was visited is not the whole.
  caf::error read(const record_filter& filter, const record_visitor& visit) const;
  /// The same in a vector.
  caf::expected<std::vector<proto::Record>> read(const record_filter& filter = {}) const;
  /// The latest `count` records, oldest first.
  caf::expected<std::vector<proto::Record>> tail(uint64_t count) const;
  /// history_digest over all records.
  caf::expected<uint64_t> digest() const;

  journal_sync sync() const noexcept { return sync_; }
  /// Else all of it is in memory, and no call waits for anything.
  virtual bool waits_for_disk() const noexcept { return true; }

protected:
  explicit journal_store(journal_sync sync) : sync_(sync) {}

  enum class direction : uint8_t { oldest_first, newest_first };
  /// Visits the records with indices above `after`, verifying that none is missing.
  virtual caf::error scan(direction towards, uint64_t after, const record_visitor& visit) const = 0;

private:
  caf::expected<bool> has_outcome(const proto::Record& record, gpu_sim::Status outcome) const;
  caf::error read_last(const record_filter& filter, const record_visitor& visit) const;
  caf::expected<bool> selects(const record_filter& filter, const proto::Record& record) const;

  journal_sync sync_;
};

} // namespace ringmaster
