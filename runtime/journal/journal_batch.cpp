#include "runtime/journal/journal_batch.hpp"

#include "runtime/invariants/ensure.hpp"
#include "runtime/journal/operation_state.hpp"
#include "runtime/journal/record_bytes.hpp"

#include <algorithm>

namespace ringmaster {

caf::expected<proto::OperationState*> journal_batch::find(operation_key key, bool is_new) {
  auto i = operations_.find(key);
  if (i != operations_.end())
    return &i->second;
  if (is_new)
    return &operations_[key];
  auto stored = tables_.operation(key);
  if (!stored)
    return std::move(stored.error());
  return &operations_.emplace(key, stored->value_or(proto::OperationState{})).first->second;
}

caf::error journal_batch::add(std::span<const proto::Record> records) {
  ensure(added_.empty() && state_.first_index() == stored_.first_index(), "records are added once, before a trim");
  added_ = records;
  for (auto& record : records) {
    const auto before = state_.last_index();
    advance(state_, record);
    auto index = state_.last_index();
    ensure(index == before + 1, "records are numbered without a gap");
    batch_.Put(tables_.files().timeline(), timeline_key(index), record_bytes(record));
    auto key = operation_of(record);
    if (!key)
      continue;
    auto operation = find(*key, record.has_operation_enqueued());
    if (!operation)
      return std::move(operation.error());
    advance(**operation, record, index);
  }
  return caf::none;
}

// Removes the operation of a removed record if this was its last record.
caf::error journal_batch::forget(const proto::Record& record) {
  auto key = operation_of(record);
  if (!key)
    return caf::none;
  auto operation = find(*key, false);
  if (!operation)
    return std::move(operation.error());
  ensure((*operation)->last_index() <= state_.last_index(), "an operation has no record after the last one");
  if ((*operation)->last_index() < state_.first_index())
    (*operation)->Clear();
  return caf::none;
}

caf::error journal_batch::trim(uint64_t first) {
  auto oldest = stored_.first_index();
  ensure(first > oldest, "the oldest records are trimmed");
  ensure(first <= state_.last_index() + 1, "only records of the journal are trimmed");
  ensure(stored_.last_index() + added_.size() == state_.last_index(), "a batch follows the stored records");
  state_.set_first_index(first);
  batch_.DeleteRange(tables_.files().timeline(), timeline_key(oldest), timeline_key(first));
  caf::error failure;
  auto last_stored = std::min(first - 1, stored_.last_index());
  if (last_stored >= oldest) {
    auto err = tables_.scan(stored_, false, oldest - 1, [&](uint64_t index, proto::Record& record) {
      failure = forget(record);
      return !failure && index < last_stored;
    });
    if (failure || err)
      return failure ? failure : err;
  }
  // The rest of the removed records were added by this batch.
  for (auto index = stored_.last_index() + 1; index < first && !failure; ++index)
    failure = forget(added_[index - stored_.last_index() - 1]);
  return failure;
}

rocksdb::WriteBatch& journal_batch::finish() {
  ensure(state_.first_index() >= stored_.first_index() && state_.last_index() >= stored_.last_index(),
         "a journal's range never moves back");
  auto& files = tables_.files();
  for (auto& [key, operation] : operations_) {
    if (operation.last_index() == 0)
      batch_.Delete(files.operations(), operations_key(key));
    else
      batch_.Put(files.operations(), operations_key(key), operation.SerializeAsString());
  }
  batch_.Put(files.meta(), "state", state_.SerializeAsString());
  return batch_;
}

} // namespace ringmaster
