#include "runtime/rocksdb_journal.hpp"

#include "messages/errc.hpp"
#include "runtime/operation_state.hpp"
#include "runtime/record_bytes.hpp"
#include "runtime/rocksdb_tables.hpp"

#include <fmt/format.h>
#include <rocksdb/write_batch.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>

namespace ringmaster {
namespace {

// Records that one batch removes at most, beside as many as it adds.
constexpr uint64_t trim_records_max = 4096;
// Attempts to open a journal for reading while its owner replaces files.
constexpr int read_attempts_max = 5;

class rocksdb_journal final : public journal_store {
public:
  // `retain_records` is 0 where the journal is open for reading.
  rocksdb_journal(rocksdb_tables tables, proto::JournalState state, journal_sync sync, uint64_t retain_records)
    : journal_store(sync), tables_(std::move(tables)), state_(std::move(state)), retain_records_(retain_records) {}

  ~rocksdb_journal() override;

  caf::error trim_to_limit();

  caf::error append(std::span<const proto::Record> records) override;
  caf::error flush() override;
  const proto::JournalState& state() const override { return state_; }
  caf::expected<std::optional<proto::OperationState>> operation(operation_key key) const override {
    return tables_.operation(key);
  }
  caf::expected<std::vector<proto::OperationState>> operations() const override { return tables_.operations(); }

protected:
  caf::error scan(direction towards, uint64_t after, const record_visitor& visit) const override {
    return tables_.scan(state_, towards == direction::newest_first, after, visit);
  }

private:
  // What one batch changes.
  struct change {
    proto::JournalState state;
    std::map<operation_key, proto::OperationState> operations; // last_index 0: forgotten
    rocksdb::WriteBatch batch;
  };

  caf::error add(change& next, const proto::Record& record) const;
  caf::error trim(change& next, uint64_t first, std::span<const proto::Record> appended) const;
  caf::error forget(change& next, const proto::Record& record) const;
  caf::error write(change& next, bool sync);
  caf::expected<proto::OperationState*> find(change& next, operation_key key) const;
  caf::error refuse_reader() const;

  rocksdb_tables tables_;
  proto::JournalState state_;
  uint64_t retain_records_;
  bool failed_ = false;
};

rocksdb_journal::~rocksdb_journal() {
  if (retain_records_ == 0 || state_.last_index() == 0)
    return;
  if (auto err = flush())
    spdlog::error("{}", render(err));
  // What lies in tables need not be replayed when the journal is opened again.
  auto& files = tables_.files();
  auto status = files.db().Flush({}, {files.timeline(), files.operations(), files.meta()});
  if (!status.ok())
    spdlog::error("{}", render(files.error_of(status, "close")));
}

caf::expected<proto::OperationState*> rocksdb_journal::find(change& next, operation_key key) const {
  auto i = next.operations.find(key);
  if (i != next.operations.end())
    return &i->second;
  auto stored = operation(key);
  if (!stored)
    return std::move(stored.error());
  return &next.operations.emplace(key, stored->value_or(proto::OperationState{})).first->second;
}

caf::error rocksdb_journal::add(change& next, const proto::Record& record) const {
  advance(next.state, record);
  auto index = next.state.last_index();
  next.batch.Put(tables_.files().timeline(), timeline_key(index), record_bytes(record));
  auto key = operation_of(record);
  if (!key)
    return caf::none;
  auto operation = find(next, *key);
  if (!operation)
    return std::move(operation.error());
  advance(**operation, record, index);
  return caf::none;
}

// The operation of a record that goes: goes, too, if this was its last one.
caf::error rocksdb_journal::forget(change& next, const proto::Record& record) const {
  auto key = operation_of(record);
  if (!key)
    return caf::none;
  auto operation = find(next, *key);
  if (!operation)
    return std::move(operation.error());
  if ((*operation)->last_index() < next.state.first_index())
    (*operation)->Clear();
  return caf::none;
}

// Removes the records before `first`. Some of them may be among `appended`, which are in the batch and not stored yet.
caf::error rocksdb_journal::trim(change& next, uint64_t first, std::span<const proto::Record> appended) const {
  auto oldest = state_.first_index();
  next.state.set_first_index(first);
  next.batch.DeleteRange(tables_.files().timeline(), timeline_key(oldest), timeline_key(first));
  caf::error failure;
  auto last_stored = std::min(first - 1, state_.last_index());
  if (last_stored >= oldest) {
    auto err = scan(direction::oldest_first, oldest - 1, [&](uint64_t index, proto::Record& record) {
      failure = forget(next, record);
      return !failure && index < last_stored;
    });
    if (failure || err)
      return failure ? failure : err;
  }
  for (auto index = state_.last_index() + 1; index < first && !failure; ++index)
    failure = forget(next, appended[index - state_.last_index() - 1]);
  return failure;
}

caf::error rocksdb_journal::write(change& next, bool sync) {
  auto& files = tables_.files();
  for (auto& [key, operation] : next.operations) {
    if (operation.last_index() == 0)
      next.batch.Delete(files.operations(), operations_key(key));
    else
      next.batch.Put(files.operations(), operations_key(key), operation.SerializeAsString());
  }
  next.batch.Put(files.meta(), "state", next.state.SerializeAsString());
  if (failed_)
    files.db().Resume(); // after a failed write RocksDB refuses all others until it is told to try again
  rocksdb::WriteOptions opts;
  opts.sync = sync;
  auto status = files.db().Write(opts, &next.batch);
  failed_ = !status.ok();
  if (failed_)
    return files.error_of(status, "write to");
  state_ = next.state;
  return sync ? files.mark()->raise(state_.last_index()) : caf::none;
}

caf::error rocksdb_journal::refuse_reader() const {
  if (retain_records_ != 0)
    return caf::none;
  return make_error(errc::invalid_argument,
                    fmt::format("journal '{}' is open for reading only", tables_.files().path().string()));
}

caf::error rocksdb_journal::append(std::span<const proto::Record> records) {
  if (auto err = refuse_reader(); err || records.empty())
    return err;
  change next;
  next.state = state_;
  for (auto& record : records)
    if (auto err = add(next, record))
      return err;
  if (next.state.last_index() - next.state.first_index() >= retain_records_) {
    auto room = std::min(retain_records_ / 8, trim_records_max); // so that the next records need no trimming
    if (auto err = trim(next, next.state.last_index() + room - retain_records_ + 1, records))
      return err;
  }
  return write(next, sync() == journal_sync::always);
}

caf::error rocksdb_journal::trim_to_limit() {
  while (retain_records_ != 0 && state_.last_index() >= state_.first_index() + retain_records_) {
    change next;
    next.state = state_;
    auto first = std::min(state_.last_index() - retain_records_ + 1, state_.first_index() + trim_records_max);
    if (auto err = trim(next, first, {}))
      return err;
    if (auto err = write(next, false))
      return err;
  }
  return caf::none;
}

caf::error rocksdb_journal::flush() {
  if (auto err = refuse_reader())
    return err;
  auto status = tables_.files().db().SyncWAL();
  if (!status.ok())
    return tables_.files().error_of(status, "sync");
  return tables_.files().mark()->raise(state_.last_index());
}

caf::expected<std::unique_ptr<journal_store>> read_journal(const std::filesystem::path& dir) {
  auto durable = durable_mark::read(dir); // before the records: a living owner writes both
  if (!durable)
    return std::move(durable.error());
  auto files = rocksdb_directory::open_read_only(dir);
  if (!files)
    return std::move(files.error());
  rocksdb_tables tables{std::move(*files)};
  auto state = tables.load(durable->value_or(0));
  if (!state)
    return std::move(state.error());
  return std::make_unique<rocksdb_journal>(std::move(tables), std::move(*state), journal_sync::never, 0);
}

} // namespace

caf::expected<std::unique_ptr<journal_store>> open_rocksdb_journal_read_only(const std::filesystem::path& dir) {
  for (auto attempt = 1;; ++attempt) {
    auto journal = read_journal(dir);
    auto code = journal ? errc::ok : code_of(journal.error());
    if (attempt == read_attempts_max || (code != errc::corrupt && code != errc::io_error))
      return journal;
  }
}

caf::expected<std::unique_ptr<journal_store>> open_rocksdb_journal(const journal_store::options& opts) {
  // RocksDB repairs what it opens for writing. What a killed process left is looked at before.
  if (rocksdb_directory::has_log(opts.dir)) {
    auto journal = open_rocksdb_journal_read_only(opts.dir);
    if (!journal)
      return std::move(journal.error());
  }
  auto files = rocksdb_directory::open(opts.dir, opts.now_ns);
  if (!files)
    return std::move(files.error());
  rocksdb_tables tables{std::move(*files)};
  auto state = tables.load(tables.files().mark()->value());
  if (!state)
    return std::move(state.error());
  auto journal = std::make_unique<rocksdb_journal>(std::move(tables), std::move(*state), opts.sync, opts.retain_records);
  if (auto err = journal->trim_to_limit())
    return err;
  return journal;
}

} // namespace ringmaster
