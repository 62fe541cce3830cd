#include "runtime/journal/journal_store.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/journal/record_bytes.hpp"
#include "runtime/journal/record_filter.hpp"
#include "runtime/journal/rocksdb_journal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <map>

namespace ringmaster {

caf::expected<journal_sync> parse_journal_sync(std::string_view text) {
  if (text == "always")
    return journal_sync::always;
  if (text == "interval")
    return journal_sync::interval;
  if (text == "never")
    return journal_sync::never;
  return invalid(fmt::format("the journal's sync policy is '{}'; allowed are always, interval, never", text));
}

caf::expected<std::unique_ptr<journal_store>> journal_store::open(const options& opts) {
  if (opts.retain_records == 0)
    return invalid("the journal must retain at least one record, not 0");
  return opts.dir.empty() ? make_memory_journal(opts) : open_rocksdb_journal(opts);
}

caf::expected<std::unique_ptr<journal_store>> journal_store::open_read_only(const std::filesystem::path& dir) {
  return open_rocksdb_journal_read_only(dir);
}

journal_store::~journal_store() = default;

caf::expected<bool> journal_store::has_outcome(const proto::Record& record, gpu_sim::Status outcome) const {
  if (auto own = outcome_of(record))
    return *own == outcome;
  auto key = operation_of(record);
  if (!key)
    return false;
  TRY(known, operation(*key));
  return known->has_value() && (*known)->status() == outcome;
}

caf::expected<bool> journal_store::selects(const record_filter& filter, const proto::Record& record) const {
  if (!filter.matches(record))
    return false;
  return filter.outcome ? has_outcome(record, *filter.outcome) : true;
}

caf::error journal_store::read(const record_filter& filter, const record_visitor& visit) const {
  if (auto err = check_kind(filter.kind))
    return err;
  if (filter.last != 0)
    return read_last(filter, visit);
  caf::error failure;
  auto err = scan(direction::oldest_first, filter.after, [&](uint64_t index, proto::Record& record) {
    auto selected = selects(filter, record);
    if (!selected)
      failure = std::move(selected.error());
    return !failure && (!*selected || visit(index, record));
  });
  return failure ? failure : err;
}

caf::error journal_store::read_last(const record_filter& filter, const record_visitor& visit) const {
  ensure(filter.last > 0, "the latest records have a number");
  std::vector<std::pair<uint64_t, proto::Record>> found; // newest first
  caf::error failure;
  auto err = scan(direction::newest_first, filter.after, [&](uint64_t index, proto::Record& record) {
    auto selected = selects(filter, record);
    if (!selected)
      failure = std::move(selected.error());
    else if (*selected)
      found.emplace_back(index, std::move(record));
    return !failure && found.size() < filter.last;
  });
  if (failure || err)
    return failure ? failure : err;
  ensure(found.size() <= filter.last, "no more records are found than asked for");
  for (auto i = found.rbegin(); i != found.rend(); ++i)
    if (!visit(i->first, i->second))
      break;
  return caf::none;
}

caf::expected<std::vector<proto::Record>> journal_store::read(const record_filter& filter) const {
  std::vector<proto::Record> records;
  auto err = read(filter, [&](uint64_t, proto::Record& record) {
    records.push_back(std::move(record));
    return true;
  });
  if (err)
    return err;
  return records;
}

caf::expected<std::vector<proto::Record>> journal_store::tail(uint64_t count) const {
  if (count == 0)
    return std::vector<proto::Record>{};
  record_filter filter;
  filter.last = count;
  return read(filter);
}

caf::expected<uint64_t> journal_store::digest() const {
  history_digest digest;
  auto err = scan(direction::oldest_first, 0, [&](uint64_t, proto::Record& record) {
    digest.add(record);
    return true;
  });
  if (err)
    return err;
  return digest.value();
}

namespace {

class memory_journal final : public journal_store {
public:
  explicit memory_journal(const options& opts)
    : journal_store(journal_sync::never), retain_records_(opts.retain_records), state_(empty_journal()) {}

  caf::error append(std::span<const proto::Record> records) override {
    for (auto& record : records) {
      advance(state_, record);
      if (auto key = operation_of(record))
        advance(operations_[*key], record, state_.last_index());
      timeline_.push_back(record);
      if (timeline_.size() > retain_records_)
        forget_oldest();
    }
    check_bounds();
    return caf::none;
  }

  caf::error flush() override { return caf::none; }
  bool waits_for_disk() const noexcept override { return false; }

  const proto::JournalState& state() const override { return state_; }

  caf::expected<std::optional<proto::OperationState>> operation(operation_key key) const override {
    auto i = operations_.find(key);
    return i == operations_.end() ? std::optional<proto::OperationState>{} : std::optional{i->second};
  }

  caf::expected<std::vector<proto::OperationState>> operations() const override {
    std::vector<proto::OperationState> result;
    for (auto& [key, operation] : operations_)
      result.push_back(operation);
    return result;
  }

protected:
  caf::error scan(direction towards, uint64_t after, const record_visitor& visit) const override {
    check_bounds();
    auto first = std::max(state_.first_index(), after + 1);
    auto skipped = std::min<uint64_t>(first - state_.first_index(), timeline_.size());
    for (uint64_t left = timeline_.size() - skipped, i = 0; i < left; ++i) {
      auto index = towards == direction::oldest_first ? first + i : state_.last_index() - i;
      auto record = timeline_[index - state_.first_index()];
      if (!visit(index, record))
        break;
    }
    return caf::none;
  }

private:
  void check_bounds() const {
    ensure(timeline_.size() == state_.last_index() + 1 - state_.first_index(), "the timeline has its state's records");
    ensure(timeline_.size() <= retain_records_, "no more records are kept than configured");
  }

  void forget_oldest() {
    ensure(!timeline_.empty(), "a record that is forgotten was kept");
    auto key = operation_of(timeline_.front());
    timeline_.pop_front();
    state_.set_first_index(state_.first_index() + 1);
    if (!key)
      return;
    auto i = operations_.find(*key);
    if (i != operations_.end() && i->second.last_index() < state_.first_index())
      operations_.erase(i);
  }

  uint64_t retain_records_;
  proto::JournalState state_;
  std::deque<proto::Record> timeline_;
  std::map<operation_key, proto::OperationState> operations_;
};

} // namespace

std::unique_ptr<journal_store> make_memory_journal(const journal_store::options& opts) {
  return std::make_unique<memory_journal>(opts);
}

std::optional<gpu_sim::Status> outcome_of(const proto::Record& record) {
  switch (record.event_case()) {
    case proto::Record::kCallsRefused:
    case proto::Record::kCommunicatorRefused:
    case proto::Record::kCommunicatorAborted: return gpu_sim::FAILED;
    case proto::Record::kCommandEnded:
      return record.command_ended().error().empty() ? gpu_sim::SUCCESS : gpu_sim::FAILED;
    default: return std::nullopt;
  }
}

void advance(proto::OperationState& state, const proto::Record& record, uint64_t index) {
  auto key = operation_of(record);
  ensure(key.has_value(), "an operation's record names the operation");
  ensure(index > state.last_index(), "an operation's records are in the order of the timeline");
  state.set_comm_id(key->communicator.value);
  state.set_sequence(key->sequence.value);
  if (state.first_index() == 0)
    state.set_first_index(index);
  state.set_last_index(index);
  if (record.has_operation_started()) {
    state.set_epoch(record.operation_started().epoch());
    state.set_attempts(state.attempts() + 1);
    state.clear_ranks_started_ns();
    state.clear_ranks_ended_ns();
  } else if (record.has_rank_ended()) {
    auto& rank = record.rank_ended();
    if (rank.epoch() != state.epoch() || rank.started_ns() == 0)
      return;
    if (state.ranks_started_ns() == 0 || rank.started_ns() < state.ranks_started_ns())
      state.set_ranks_started_ns(rank.started_ns());
    state.set_ranks_ended_ns(std::max(state.ranks_ended_ns(), rank.ended_ns()));
  } else if (record.has_operation_ended()) {
    auto& end = record.operation_ended();
    state.set_status(end.status());
    state.set_error(end.error());
    state.set_epoch(end.epoch());
    state.set_attempts(std::max(state.attempts(), end.attempts()));
  }
}

void advance(proto::JournalState& state, const proto::Record& record) {
  ensure(state.first_index() >= 1 && state.first_index() <= state.last_index() + 1, "a timeline's bounds are in order");
  state.set_last_index(state.last_index() + 1);
  auto device = [&](uint64_t id) { state.set_device_id(std::max(state.device_id(), id)); };
  auto node = [&](uint64_t id) { state.set_node_id(std::max(state.node_id(), id)); };
  if (auto communicator = communicator_of(record))
    state.set_comm_id(std::max(state.comm_id(), communicator->value));
  if (record.has_ids_reserved()) {
    auto& ids = record.ids_reserved(); // sets the ids, even to lower ones
    state.set_node_id(ids.node_id());
    state.set_device_id(ids.device_id());
    state.set_comm_id(ids.comm_id());
  } else if (record.has_node_joined()) {
    node(record.node_joined().node_id());
  } else if (record.has_device_joined()) {
    node(record.device_joined().node_id());
    device(record.device_joined().metadata().deviceid().value());
  } else if (record.has_communicator_created()) {
    for (auto id : record.communicator_created().device_ids())
      device(id);
  } else if (record.has_command_ended()) {
    state.set_stream_id(std::max(state.stream_id(), record.command_ended().stream_id()));
  } else if (record.has_rank_ended()) {
    state.set_stream_id(std::max(state.stream_id(), record.rank_ended().stream_id()));
  }
}

proto::JournalState empty_journal() {
  proto::JournalState state;
  state.set_first_index(1);
  return state;
}

} // namespace ringmaster
