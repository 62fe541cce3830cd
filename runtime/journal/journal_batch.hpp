#pragma once

#include "messages/journal.pb.h"
#include "runtime/journal/record_filter.hpp"
#include "runtime/journal/rocksdb_tables.hpp"

#include <caf/error.hpp>
#include <rocksdb/write_batch.h>

#include <map>
#include <span>

namespace ringmaster {

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
