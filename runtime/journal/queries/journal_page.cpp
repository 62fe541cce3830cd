#include "runtime/journal/queries/journal_page.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <deque>

namespace ringmaster {
namespace {

record_filter filter_of(const proto::JournalTailRequest& x) {
  record_filter result;
  result.kind = x.kind();
  if (x.comm_id() != 0)
    result.communicator = communicator_id{x.comm_id()};
  if (x.device_id() != 0)
    result.device = device_id{x.device_id()};
  return result;
}

bool selects_all(const proto::JournalTailRequest& x) {
  return x.kind().empty() && x.comm_id() == 0 && x.device_id() == 0;
}

/// Collects one page. Forward it stops at the first limit; backward it visits the latest records and drops the oldest.
class page_builder {
public:
  page_builder(bool forward, uint32_t records_max, uint64_t bytes_max)
    : forward_(forward), records_max_(records_max), bytes_max_(bytes_max) {}

  /// Returns whether the record was taken.
  bool add(uint64_t index, proto::Record& record) {
    const auto bytes = record.ByteSizeLong();
    if (forward_ && is_full(bytes))
      return false;
    while (!forward_ && is_full(bytes))
      drop_oldest();
    bytes_ += bytes;
    found_.push_back({index, bytes, std::move(record)});
    return true;
  }

  /// The index of the newest record that was dropped; 0: none.
  uint64_t dropped() const { return dropped_; }

  void write_to(proto::JournalTailResponse& page) {
    for (auto& x : found_) {
      page.add_indices(x.index);
      *page.add_records() = std::move(x.record);
    }
  }

private:
  struct entry {
    uint64_t index = 0;
    uint64_t bytes = 0;
    proto::Record record;
  };

  bool is_full(uint64_t bytes) const {
    return !found_.empty() && (found_.size() >= records_max_ || bytes_ + bytes > bytes_max_);
  }

  void drop_oldest() {
    dropped_ = found_.front().index;
    bytes_ -= found_.front().bytes;
    found_.pop_front();
  }

  const bool forward_;
  const uint32_t records_max_;
  const uint64_t bytes_max_;
  std::deque<entry> found_;
  uint64_t bytes_ = 0;
  uint64_t dropped_ = 0;
};

/// The records to search: [first, last], empty if last < first.
struct bounds {
  uint64_t first = 1;
  uint64_t last = 0;
};

bounds bounds_of(const proto::JournalState& kept, const proto::JournalTailRequest& x, uint64_t window) {
  bounds result{std::max(kept.first_index(), x.after() + 1), kept.last_index()};
  if (x.before() != 0)
    result.last = std::min(result.last, x.before() - 1);
  if (result.last < result.first)
    return {};
  if (x.forward())
    result.last = std::min(result.last, result.first + window - 1);
  else if (result.last - result.first >= window)
    result.first = result.last - window + 1;
  return result;
}

} // namespace

caf::expected<proto::JournalTailResponse> journal_page(const journal_store& journal, const proto::JournalTailRequest& x,
                                                       const journal_page_limits& limits) {
  proto::JournalTailResponse page;
  page.set_first_index(journal.state().first_index());
  page.set_last_index(journal.state().last_index());
  const auto records_max = std::min(x.records_max(), limits.records_max);
  const auto window = selects_all(x) ? std::min<uint64_t>(records_max, limits.searched_max) : limits.searched_max;
  auto range = records_max == 0 ? bounds{} : bounds_of(journal.state(), x, window);
  const auto filter = filter_of(x);
  if (auto err = check_kind(filter.kind))
    return err;
  page_builder found{x.forward(), records_max, limits.bytes_max};
  record_filter all; // every record is visited, so that the search is bounded
  all.after = range.first - 1;
  auto err = journal.read(all, [&](uint64_t index, proto::Record& record) {
    if (index > range.last)
      return false;
    if (filter.matches(record) && !found.add(index, record)) {
      range.last = index - 1;
      return false;
    }
    return index < range.last;
  });
  if (err)
    return err;
  if (range.last >= range.first) {
    page.set_searched_first(std::max(range.first, found.dropped() + 1));
    page.set_searched_last(range.last);
  }
  found.write_to(page);
  ensure(page.indices_size() == page.records_size(), "each record of a page has its index");
  return page;
}

} // namespace ringmaster
