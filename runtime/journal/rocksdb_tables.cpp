#include "runtime/journal/rocksdb_tables.hpp"

#include "runtime/invariants/ensure.hpp"
#include "runtime/journal/operation_state.hpp"

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

} // namespace ringmaster
