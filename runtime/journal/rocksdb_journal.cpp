#include "runtime/journal/rocksdb_journal.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/journal/rocksdb_tables.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace ringmaster {

namespace {

/// File descriptors held back for RocksDB. When it gets none for the next file of its log, the process aborts as soon
/// as the database is used or closed, so it must not be touched then.
class descriptor_reserve {
public:
  static constexpr int count
    = 48; ///< Log, manifest, lock and mark, and the tables that RocksDB keeps open between merges.

  descriptor_reserve() { held_.fill(-1); }
  descriptor_reserve(const descriptor_reserve&) = delete;
  descriptor_reserve& operator=(const descriptor_reserve&) = delete;
  ~descriptor_reserve() { release(); }

  /// Opens the descriptors that it does not hold yet. Returns whether it holds all of them.
  bool fill();
  /// Whether the process could open a few more now. Requires a filled reserve.
  bool has_more() const;
  void release();

private:
  std::array<int, count> held_;
};

bool descriptor_reserve::fill() {
  for (auto& each : held_)
    if (each < 0 && (each = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
      return false;
  return true;
}

bool descriptor_reserve::has_more() const {
  ensure(held_.front() >= 0, "spare descriptors are looked for while the reserve is full");
  std::array<int, 4> more;
  for (auto& each : more)
    each = ::fcntl(held_.front(), F_DUPFD_CLOEXEC, 0);
  for (auto each : more)
    if (each >= 0)
      ::close(each);
  return more.back() >= 0;
}

void descriptor_reserve::release() {
  for (auto& each : held_)
    if (each >= 0)
      ::close(std::exchange(each, -1));
}

// The most records that a batch removes beyond those that it adds.
constexpr uint64_t trim_records_max = 4096;
// Attempts to open a journal for reading while its owner replaces files.
constexpr int read_attempts_max = 5;

// An open database and its state.
struct contents {
  rocksdb_tables tables;
  proto::JournalState state;
};

caf::expected<contents> load(caf::expected<std::unique_ptr<rocksdb_directory>> files, uint64_t durable) {
  if (!files)
    return std::move(files.error());
  rocksdb_tables tables{std::move(*files)};
  TRY(state, tables.load(durable));
  return contents{std::move(tables), std::move(*state)};
}

caf::expected<contents> open_for_reading(const std::filesystem::path& dir) {
  for (auto attempt = 1;; ++attempt) {
    auto durable = durable_mark::read(dir); // before the records, since a living owner writes both
    if (!durable)
      return std::move(durable.error());
    auto found = load(rocksdb_directory::open_read_only(dir), durable->value_or(0));
    auto code = found ? errc::ok : code_of(found.error());
    if (attempt == read_attempts_max || (code != errc::corrupt && code != errc::io_error))
      return found;
  }
}

caf::expected<contents> open_for_writing(const std::filesystem::path& dir, uint64_t now_ns) {
  // RocksDB repairs a database that it opens for writing, so the log of a killed process is checked before.
  if (rocksdb_directory::has_log(dir)) {
    TRY(found, open_for_reading(dir));
  }
  auto files = rocksdb_directory::open(dir, now_ns);
  auto durable = files ? (*files)->mark()->value() : 0;
  return load(std::move(files), durable);
}

class rocksdb_journal final : public journal_store {
public:
  // Read-only if `opts.retain_records` is 0.
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
  /// Opens the database again, creates one if there is none, and reads its state.
  caf::error reopen();
  /// Whether ids were assigned that the journal does not contain: it is new, or has lost records.
  bool lacks_ids() const;
  caf::error write_ids();
  void lose(uint64_t records, std::string cause);
  caf::error write(journal_batch& batch, bool sync);
  caf::error fail(const rocksdb::Status& status, std::string_view doing);

  options options_;
  std::optional<rocksdb_tables> tables_; // none: a write failed, and the database could not be opened again
  proto::JournalState state_;
  proto::IdsReserved ids_; // the highest in any state: they are never assigned again
  uint64_t acknowledged_;  // the last record whose append succeeded; after a recovery the journal may have later ones
  caf::error failure_;     // of the last write or sync
  descriptor_reserve reserve_;
  bool removed_ = false; // its files were removed, and no new journal could be created yet
  std::optional<journal_loss> loss_;
};

rocksdb_journal::~rocksdb_journal() {
  if (options_.retain_records == 0 || state_.last_index() == 0 || failure_)
    return;
  if (auto err = flush()) {
    spdlog::error("{}", render(err));
    return;
  }
  // Records in tables are not replayed when the journal is opened again.
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
  ensure(tables_.has_value() && !status.ok(), "a failure is reported by an open database");
  return failure_ = tables_->files().error_of(status, doing);
}

// After a failed write the database must be opened again: some builds of RocksDB abort the process when its log is
// used. It then has all records that were written, perhaps including those whose write was reported as failed.
caf::error rocksdb_journal::recover() {
  if (options_.retain_records == 0)
    return invalid(fmt::format("journal '{}' is open for reading only", options_.dir.string()));
  if (!reserve_.fill() || !reserve_.has_more()) {
    reserve_.release(); // RocksDB may need them for work in progress
    return make_error(errc::io_error,
                      fmt::format("journal '{}' is not written while this process has fewer than {} "
                                  "descriptors left: raise the limit on open files, or check for too many connections",
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
  ensure(state_.first_index() <= state_.last_index() + 1, "a stored timeline's bounds are in order");
  failure_ = caf::none;
  return caf::none;
}

bool rocksdb_journal::lacks_ids() const {
  return state_.node_id() < ids_.node_id() || state_.device_id() < ids_.device_id()
         || state_.comm_id() < ids_.comm_id();
}

caf::error rocksdb_journal::write_ids() {
  ensure(lacks_ids(), "ids are written if the journal lacks them");
  proto::Record record;
  record.set_time_ns(options_.now_ns);
  *record.mutable_ids_reserved() = ids_;
  journal_batch batch{*tables_, state_};
  RETURN_ERROR(batch.add({&record, 1}));
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
  RETURN_ERROR(reopen());
  acknowledged_ = state_.last_index();
  removed_ = false;
  return lacks_ids() ? write_ids() : caf::none;
}

caf::error rocksdb_journal::write(journal_batch& batch, bool sync) {
  ensure(tables_.has_value() && !failure_, "records are written to an open database");
  ensure(batch.state().last_index() >= state_.last_index(), "a batch removes no latest record");
  rocksdb::WriteOptions opts;
  opts.sync = sync;
  auto status = tables_->files().db().Write(opts, &batch.finish());
  if (!status.ok())
    return fail(status, "write to");
  state_ = batch.state();
  acknowledged_ = state_.last_index();
  if (sync) // the next flush reports an error: the records are written and must not be written again
    (void)tables_->files().mark()->raise(state_.last_index());
  return caf::none;
}

caf::error rocksdb_journal::append(std::span<const proto::Record> records) {
  RETURN_ERROR(recover());
  // A failed write or sync may have stored some of the records. A failed disk may have lost acknowledged ones.
  if (auto last = state_.last_index(); last > acknowledged_)
    records = records.subspan(std::min<size_t>(records.size(), last - acknowledged_));
  else if (last < acknowledged_)
    lose(acknowledged_ - last, fmt::format("journal '{}' lost records {} to {} when its disk failed: they were not "
                                           "durable yet",
                                           options_.dir.string(), last + 1, acknowledged_));
  acknowledged_ = state_.last_index();
  ensure(tables_.has_value(), "a recovered journal is open");
  if (lacks_ids())
    RETURN_ERROR(write_ids());
  if (records.empty())
    return caf::none;
  journal_batch batch{*tables_, state_};
  RETURN_ERROR(batch.add(records));
  auto last = batch.state().last_index();
  if (last - state_.first_index() >= options_.retain_records) {
    auto spare = std::min(options_.retain_records / 8, trim_records_max); // the next batches then need no trim
    RETURN_ERROR(batch.trim(last + spare - options_.retain_records + 1));
  }
  return write(batch, sync() == journal_sync::always);
}

caf::error rocksdb_journal::trim_to_limit() {
  while (state_.last_index() >= state_.first_index() + options_.retain_records) {
    auto first = std::min(state_.last_index() - options_.retain_records + 1, state_.first_index() + trim_records_max);
    ensure(first > state_.first_index(), "each trim removes records");
    journal_batch batch{*tables_, state_};
    RETURN_ERROR(batch.trim(first));
    RETURN_ERROR(write(batch, false));
  }
  return caf::none;
}

caf::error rocksdb_journal::flush() {
  RETURN_ERROR(recover());
  ensure(tables_.has_value(), "an open database is synced");
  auto status = tables_->files().db().SyncWAL();
  if (!status.ok())
    return fail(status, "sync");
  return tables_->files().mark()->raise(state_.last_index());
}

} // namespace

caf::expected<std::unique_ptr<journal_store>> open_rocksdb_journal_read_only(const std::filesystem::path& dir) {
  TRY(found, open_for_reading(dir));
  journal_store::options opts;
  opts.dir = dir;
  opts.sync = journal_sync::never;
  opts.retain_records = 0;
  return std::make_unique<rocksdb_journal>(opts, std::move(*found));
}

caf::expected<std::unique_ptr<journal_store>> open_rocksdb_journal(const journal_store::options& opts) {
  TRY(found, open_for_writing(opts.dir, opts.now_ns));
  auto journal = std::make_unique<rocksdb_journal>(opts, std::move(*found));
  RETURN_ERROR(journal->trim_to_limit());
  return journal;
}

} // namespace ringmaster
