#include "runtime/journal/rocksdb_tables.hpp"

#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/journal/journal_store.hpp"
#include "runtime/journal/record_bytes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {
namespace {

void append_number(std::string& key, uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8)
    key.push_back(static_cast<char>(value >> shift));
}

uint64_t index_of(const rocksdb::Slice& key) {
  uint64_t index = 0;
  for (size_t i = 0; i < key.size(); ++i)
    index = index << 8 | static_cast<uint8_t>(key[i]);
  return index;
}

bool parse(google::protobuf::Message& message, const rocksdb::Slice& bytes) {
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

} // namespace

std::string timeline_key(uint64_t index) {
  std::string key;
  append_number(key, index);
  return key;
}

std::string operations_key(operation_key operation) {
  std::string key;
  append_number(key, operation.communicator.value);
  append_number(key, operation.sequence.value);
  ensure(key.size() == 2 * sizeof(uint64_t), "an operation's key is two numbers");
  return key;
}

rocksdb_tables::rocksdb_tables(std::unique_ptr<rocksdb_directory> files) : files_(std::move(files)) {
  ensure(files_ != nullptr, "tables are those of an open database");
}

caf::expected<proto::JournalState> rocksdb_tables::load(uint64_t durable) const {
  auto state = empty_journal();
  std::string bytes;
  auto status = files_->db().Get({}, files_->meta(), "state", &bytes);
  if (!status.ok() && !status.IsNotFound())
    return files_->error_of(status, "read");
  if (status.ok() && !parse(state, bytes))
    return files_->corrupt("its state cannot be parsed");
  std::unique_ptr<rocksdb::Iterator> i{files_->db().NewIterator({}, files_->timeline())};
  i->SeekToFirst();
  auto first = i->Valid() ? index_of(i->key()) : 1;
  if (i->status().ok())
    i->SeekToLast();
  if (!i->status().ok())
    return files_->error_of(i->status(), "read");
  auto last = i->Valid() ? index_of(i->key()) : 0;
  if (first != state.first_index() || last != state.last_index())
    return files_->corrupt(fmt::format("it holds the records {} to {}, though {} to {} were written", first, last,
                                       state.first_index(), state.last_index()));
  if (last < durable)
    return files_->corrupt(fmt::format("it ends at record {}, though {} were durable", last, durable));
  return state;
}

caf::error rocksdb_tables::scan(const proto::JournalState& bounds, bool backward, uint64_t after,
                                const record_visitor& visit) const {
  auto last = bounds.last_index();
  if (after >= last)
    return caf::none;
  auto first = std::max(bounds.first_index(), after + 1);
  ensure(first >= 1 && first <= last, "a scan is of records that the bounds have");
  rocksdb::ReadOptions opts;
  opts.fill_cache = false;
  std::unique_ptr<rocksdb::Iterator> i{files_->db().NewIterator(opts, files_->timeline())};
  i->Seek(timeline_key(backward ? last : first));
  for (uint64_t step = 0; step <= last - first; ++step) {
    auto index = backward ? last - step : first + step;
    if (!i->status().ok())
      return files_->error_of(i->status(), "read");
    if (!i->Valid() || index_of(i->key()) != index)
      return files_->corrupt(fmt::format("record {} is missing among {} to {}", index, bounds.first_index(), last));
    proto::Record record;
    if (!parse(record, i->value()))
      return files_->corrupt(fmt::format("record {} cannot be parsed", index));
    if (!visit(index, record))
      return caf::none;
    if (backward)
      i->Prev();
    else
      i->Next();
  }
  return caf::none;
}

caf::expected<std::optional<proto::OperationState>> rocksdb_tables::operation(operation_key key) const {
  std::string bytes;
  auto status = files_->db().Get({}, files_->operations(), operations_key(key), &bytes);
  if (status.IsNotFound())
    return std::optional<proto::OperationState>{};
  if (!status.ok())
    return files_->error_of(status, "read");
  proto::OperationState operation;
  if (!parse(operation, bytes))
    return files_->corrupt(fmt::format("the state of communicator {}'s operation {} cannot be parsed",
                                       key.communicator.value, key.sequence.value));
  return std::optional{std::move(operation)};
}

caf::expected<std::vector<proto::OperationState>> rocksdb_tables::operations() const {
  std::vector<proto::OperationState> result;
  std::unique_ptr<rocksdb::Iterator> i{files_->db().NewIterator({}, files_->operations())};
  for (i->SeekToFirst(); i->Valid(); i->Next())
    if (!parse(result.emplace_back(), i->value()))
      return files_->corrupt("the state of an operation cannot be parsed");
  if (!i->status().ok())
    return files_->error_of(i->status(), "read");
  return result;
}

caf::expected<proto::OperationState*> journal_batch::find(operation_key key, bool is_new) {
  auto i = operations_.find(key);
  if (i != operations_.end())
    return &i->second;
  if (is_new)
    return &operations_[key];
  TRY(stored, tables_.operation(key));
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
    TRY(operation, find(*key, record.has_operation_enqueued()));
    advance(**operation, record, index);
  }
  return caf::none;
}

// Removes the operation of a removed record if this was its last record.
caf::error journal_batch::forget(const proto::Record& record) {
  auto key = operation_of(record);
  if (!key)
    return caf::none;
  TRY(operation, find(*key, false));
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
