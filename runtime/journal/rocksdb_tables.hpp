#pragma once

#include "messages/ids.hpp"
#include "messages/journal.pb.h"
#include "runtime/journal/record_filter.hpp"
#include "runtime/journal/rocksdb_directory.hpp"

#include <caf/error.hpp>
#include <rocksdb/write_batch.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ringmaster {

/// Keys have the order of their numbers.
std::string timeline_key(uint64_t index);
std::string operations_key(operation_key operation);

/// Reads the families of a journal's database.
class rocksdb_tables {
public:
  /// Returns false to stop.
  using record_visitor = std::function<bool(uint64_t index, proto::Record& record)>;

  explicit rocksdb_tables(std::unique_ptr<rocksdb_directory> files);

  rocksdb_directory& files() const { return *files_; }

  /// The journal's state, after checking that it agrees with the timeline, which must reach record `durable`.
  /// Errors: corrupt, io_error.
  caf::expected<proto::JournalState> load(uint64_t durable) const;

  /// Visits the records within `bounds` after index `after`; the newest first if `backward`. Errors: corrupt (one is
  /// missing or cannot be parsed), io_error.
  caf::error scan(const proto::JournalState& bounds, bool backward, uint64_t after, const record_visitor& visit) const;

  caf::expected<std::optional<proto::OperationState>> operation(operation_key key) const;
  caf::expected<std::vector<proto::OperationState>> operations() const;

private:
  std::unique_ptr<rocksdb_directory> files_;
};

/// The changes of one write to a journal: records added, records removed, and the states of their operations.
class journal_batch {
public:
  /// `state`: the stored one. `tables` must outlive this object.
  journal_batch(const rocksdb_tables& tables, const proto::JournalState& state)
    : tables_(tables), stored_(state), state_(state) {}

  /// Called once. The records must outlive this object. Errors: corrupt, io_error.
  caf::error add(std::span<const proto::Record> records);
  /// Removes the records before index `first`, and operations without records. Called at most once, after `add`.
  caf::error trim(uint64_t first);

  /// The journal's state once the batch is written.
  const proto::JournalState& state() const { return state_; }
  /// Called once, at the end.
  rocksdb::WriteBatch& finish();

private:
  /// Reads the stored state unless `is_new`: the first record of an operation is that it was enqueued.
  caf::expected<proto::OperationState*> find(operation_key key, bool is_new);
  caf::error forget(const proto::Record& record);

  const rocksdb_tables& tables_;
  proto::JournalState stored_;
  proto::JournalState state_;
  std::span<const proto::Record> added_;
  std::map<operation_key, proto::OperationState> operations_; ///< last_index 0: to be deleted.
  rocksdb::WriteBatch batch_;
};

} // namespace ringmaster
