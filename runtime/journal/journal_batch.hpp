#pragma once

#include "messages/journal.pb.h"
#include "runtime/journal/record_filter.hpp"
#include "runtime/journal/rocksdb_tables.hpp"

#include <caf/error.hpp>
#include <rocksdb/write_batch.h>

#include <map>
#include <span>

namespace ringmaster {

/// What one write changes in a journal: records that come, records that go, and what follows for their operations.
class journal_batch {
public:
  /// Begins at `state`, the stored one. `tables` must outlive this object.
  journal_batch(const rocksdb_tables& tables, const proto::JournalState& state)
    : tables_(tables), stored_(state), state_(state) {}

  /// Adds the records. They must outlive this object. Once. Errors: corrupt, io_error.
  caf::error add(std::span<const proto::Record> records);
  /// Removes the records before index `first`, and the operations that have none left. Once, after `add`.
  caf::error trim(uint64_t first);

  /// The state with it.
  const proto::JournalState& state() const { return state_; }
  /// Once, at the end.
  rocksdb::WriteBatch& finish();

private:
  /// Reads the stored one unless it is new: an operation is enqueued once, before all else that is told of it.
  caf::expected<proto::OperationState*> find(operation_key key, bool is_new);
  caf::error forget(const proto::Record& record);

  const rocksdb_tables& tables_;
  proto::JournalState stored_;
  proto::JournalState state_;
  std::span<const proto::Record> added_;
  std::map<operation_key, proto::OperationState> operations_; // last_index 0: goes
  rocksdb::WriteBatch batch_;
};

} // namespace ringmaster
