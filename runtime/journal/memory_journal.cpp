#include "runtime/journal/memory_journal.hpp"

#include "runtime/invariants/ensure.hpp"
#include "runtime/journal/operation_state.hpp"

#include <algorithm>
#include <deque>
#include <map>

namespace ringmaster {
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

} // namespace ringmaster
