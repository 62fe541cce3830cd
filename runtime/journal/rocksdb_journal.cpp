#include "runtime/journal/rocksdb_journal.hpp"

#include "messages/errc.hpp"
#include "runtime/journal/descriptor_reserve.hpp"
#include "runtime/journal/journal_batch.hpp"
#include "runtime/journal/rocksdb_tables.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace ringmaster {
namespace {

// Records that one batch removes at most, beside as many as it adds.
constexpr uint64_t trim_records_max = 4096;
// Attempts to open a journal for reading while its owner replaces files.
constexpr int read_attempts_max = 5;

// An open database and what it holds.
struct contents {
  rocksdb_tables tables;
  proto::JournalState state;
};

caf::expected<contents> load(caf::expected<std::unique_ptr<rocksdb_directory>> files, uint64_t durable) {
  if (!files)
    return std::move(files.error());
  rocksdb_tables tables{std::move(*files)};
  auto state = tables.load(durable);
  if (!state)
    return std::move(state.error());
  return contents{std::move(tables), std::move(*state)};
}

caf::expected<contents> open_for_reading(const std::filesystem::path& dir) {
  for (auto attempt = 1;; ++attempt) {
    auto durable = durable_mark::read(dir); // before the records: a living owner writes both
    if (!durable)
      return std::move(durable.error());
    auto found = load(rocksdb_directory::open_read_only(dir), durable->value_or(0));
    auto code = found ? errc::ok : code_of(found.error());
    if (attempt == read_attempts_max || (code != errc::corrupt && code != errc::io_error))
      return found;
  }
}

caf::expected<contents> open_for_writing(const std::filesystem::path& dir, uint64_t now_ns) {
  // RocksDB repairs what it opens for writing. What a killed process left is looked at before.
  if (rocksdb_directory::has_log(dir)) {
    auto found = open_for_reading(dir);
    if (!found)
      return std::move(found.error());
  }
  auto files = rocksdb_directory::open(dir, now_ns);
  auto durable = files ? (*files)->mark()->value() : 0;
  return load(std::move(files), durable);
}

class rocksdb_journal final : public journal_store {
public:
  // For reading only where `opts.retain_records` is 0.
  rocksdb_journal(const options& opts, contents found)
    : journal_store(opts.sync), options_(opts), tables_(std::move(found.tables)), state_(std::move(found.state)),
      acknowledged_(state_.last_index()) {
    if (opts.retain_records != 0)
      reserve_.fill();
  }

  ~rocksdb_journal() override;

  caf::error trim_to_limit();

  caf::error append(std::span<const proto::Record> records) override;
  caf::error flush() override;
  caf::error keep_in_place() override;
  std::optional<journal_loss> take_loss() override { return std::exchange(loss_, std::nullopt); }
  const proto::JournalState& state() const override { return state_; }
  caf::expected<std::optional<proto::OperationState>> operation(operation_key key) const override;
  caf::expected<std::vector<proto::OperationState>> operations() const override;

protected:
  caf::error scan(direction towards, uint64_t after, const record_visitor& visit) const override;

private:
  caf::error recover();
  /// Opens the database anew, a new one where there is none, and takes its state.
  caf::error reopen();
  /// Whether the journal does not know of ids that were given before: it is a new one, or has lost the record of them.
  bool lacks_ids() const;
  caf::error write_ids();
  void lose(uint64_t records, std::string cause);
  caf::error write(journal_batch& batch, bool sync);
  caf::error fail(const rocksdb::Status& status, std::string_view doing);

  options options_;
  std::optional<rocksdb_tables> tables_; // none: it failed and could not be opened again
  proto::JournalState state_;
  proto::IdsReserved ids_; // the highest that were in any state: they are never given again
  uint64_t acknowledged_;  // the last record whose append succeeded; less than what is there after a recovery
  caf::error failure_;     // of the last write or sync
  descriptor_reserve reserve_;
  bool removed_ = false; // its files are gone, and no new journal could be started yet
  std::optional<journal_loss> loss_;
};

rocksdb_journal::~rocksdb_journal() {
  if (options_.retain_records == 0 || state_.last_index() == 0 || failure_)
    return;
  if (auto err = flush()) {
    spdlog::error("{}", render(err));
    return;
  }
  // What lies in tables need not be replayed when the journal is opened again.
  auto& files = tables_->files();
  auto status = files.db().Flush({}, {files.timeline(), files.operations(), files.meta()});
  if (!status.ok())
    spdlog::error("{}", render(files.error_of(status, "close")));
}

caf::expected<std::optional<proto::OperationState>> rocksdb_journal::operation(operation_key key) const {
  return tables_ ? tables_->operation(key) : failure_;
}

caf::expected<std::vector<proto::OperationState>> rocksdb_journal::operations() const {
  return tables_ ? tables_->operations() : failure_;
}

caf::error rocksdb_journal::scan(direction towards, uint64_t after, const record_visitor& visit) const {
  return tables_ ? tables_->scan(state_, towards == direction::newest_first, after, visit) : failure_;
}

caf::error rocksdb_journal::fail(const rocksdb::Status& status, std::string_view doing) {
  return failure_ = tables_->files().error_of(status, doing);
}

// After a failed write the database is good for nothing more: some builds of RocksDB end the process when its log is
// touched again. Opened anew it holds all that was written, which may include what seemed to have failed.
caf::error rocksdb_journal::recover() {
  if (options_.retain_records == 0)
    return make_error(errc::invalid_argument,
                      fmt::format("journal '{}' is open for reading only", options_.dir.string()));
  if (!reserve_.fill() || !reserve_.has_more()) {
    reserve_.release(); // for what RocksDB has under way
    return make_error(errc::io_error,
                      fmt::format("journal '{}' is left alone while this process has fewer than {} "
                                  "descriptors left: raise the limit on open files, or see who connects",
                                  options_.dir.string(), descriptor_reserve::count));
  }
  return failure_ ? reopen() : caf::none;
}

caf::error rocksdb_journal::reopen() {
  reserve_.release();
  tables_.reset();
  auto found = open_for_writing(options_.dir, options_.now_ns);
  reserve_.fill();
  if (!found)
    return failure_ = std::move(found.error());
  tables_ = std::move(found->tables);
  ids_.set_node_id(std::max(ids_.node_id(), state_.node_id()));
  ids_.set_device_id(std::max(ids_.device_id(), state_.device_id()));
  ids_.set_comm_id(std::max(ids_.comm_id(), state_.comm_id()));
  state_ = std::move(found->state);
  failure_ = caf::none;
  return caf::none;
}

bool rocksdb_journal::lacks_ids() const {
  return state_.node_id() < ids_.node_id() || state_.device_id() < ids_.device_id()
         || state_.comm_id() < ids_.comm_id();
}

caf::error rocksdb_journal::write_ids() {
  proto::Record record;
  record.set_time_ns(options_.now_ns);
  *record.mutable_ids_reserved() = ids_;
  journal_batch batch{*tables_, state_};
  if (auto err = batch.add({&record, 1}))
    return err;
  return write(batch, sync() == journal_sync::always);
}

void rocksdb_journal::lose(uint64_t records, std::string cause) {
  spdlog::error("journal: {} lost: {}", counted(records, "record"), cause);
  loss_ = journal_loss{records + (loss_ ? loss_->records : 0), std::move(cause)};
}

caf::error rocksdb_journal::keep_in_place() {
  if (!removed_ && (!tables_ || tables_->files().mark()->in_place()))
    return caf::none;
  if (!std::exchange(removed_, true)) {
    lose(state_.last_index() + 1 - state_.first_index(),
         fmt::format("the journal's directory '{}' was removed or moved away while it was in use; later records go to "
                     "a new journal there once it can be created",
                     options_.dir.string()));
  }
  if (auto err = reopen())
    return err;
  acknowledged_ = state_.last_index();
  removed_ = false;
  return lacks_ids() ? write_ids() : caf::none;
}

caf::error rocksdb_journal::write(journal_batch& batch, bool sync) {
  rocksdb::WriteOptions opts;
  opts.sync = sync;
  auto status = tables_->files().db().Write(opts, &batch.finish());
  if (!status.ok())
    return fail(status, "write to");
  state_ = batch.state();
  acknowledged_ = state_.last_index();
  if (sync) // an error is left to the next flush: the records are written and must not be again
    (void)tables_->files().mark()->raise(state_.last_index());
  return caf::none;
}

caf::error rocksdb_journal::append(std::span<const proto::Record> records) {
  if (auto err = recover())
    return err;
  // What a failed write or sync has left is there already. A failed disk may also have lost what was acknowledged.
  if (auto last = state_.last_index(); last > acknowledged_)
    records = records.subspan(std::min<size_t>(records.size(), last - acknowledged_));
  else if (last < acknowledged_)
    lose(acknowledged_ - last, fmt::format("journal '{}' lost records {} to {} when its disk failed: they were not "
                                           "durable yet",
                                           options_.dir.string(), last + 1, acknowledged_));
  acknowledged_ = state_.last_index();
  if (lacks_ids())
    if (auto err = write_ids())
      return err;
  if (records.empty())
    return caf::none;
  journal_batch batch{*tables_, state_};
  if (auto err = batch.add(records))
    return err;
  auto last = batch.state().last_index();
  if (last - state_.first_index() >= options_.retain_records) {
    auto room = std::min(options_.retain_records / 8, trim_records_max); // so that the next ones need no trimming
    if (auto err = batch.trim(last + room - options_.retain_records + 1))
      return err;
  }
  return write(batch, sync() == journal_sync::always);
}

caf::error rocksdb_journal::trim_to_limit() {
  while (state_.last_index() >= state_.first_index() + options_.retain_records) {
    auto first = std::min(state_.last_index() - options_.retain_records + 1, state_.first_index() + trim_records_max);
    journal_batch batch{*tables_, state_};
    if (auto err = batch.trim(first))
      return err;
    if (auto err = write(batch, false))
      return err;
  }
  return caf::none;
}

caf::error rocksdb_journal::flush() {
  if (auto err = recover())
    return err;
  auto status = tables_->files().db().SyncWAL();
  if (!status.ok())
    return fail(status, "sync");
  return tables_->files().mark()->raise(state_.last_index());
}

} // namespace

caf::expected<std::unique_ptr<journal_store>> open_rocksdb_journal_read_only(const std::filesystem::path& dir) {
  auto found = open_for_reading(dir);
  if (!found)
    return std::move(found.error());
  journal_store::options opts;
  opts.dir = dir;
  opts.sync = journal_sync::never;
  opts.retain_records = 0;
  return std::make_unique<rocksdb_journal>(opts, std::move(*found));
}

caf::expected<std::unique_ptr<journal_store>> open_rocksdb_journal(const journal_store::options& opts) {
  auto found = open_for_writing(opts.dir, opts.now_ns);
  if (!found)
    return std::move(found.error());
  auto journal = std::make_unique<rocksdb_journal>(opts, std::move(*found));
  if (auto err = journal->trim_to_limit())
    return err;
  return journal;
}

} // namespace ringmaster
