#include "runtime/journal/journal_store.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/journal/memory_journal.hpp"
#include "runtime/journal/record_bytes.hpp"
#include "runtime/journal/record_outcome.hpp"
#include "runtime/journal/rocksdb_journal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ringmaster {

caf::expected<journal_sync> parse_journal_sync(std::string_view text) {
  if (text == "always")
    return journal_sync::always;
  if (text == "interval")
    return journal_sync::interval;
  if (text == "never")
    return journal_sync::never;
  return make_error(errc::invalid_argument,
                    fmt::format("the journal's sync policy is '{}'; allowed are always, interval, never", text));
}

caf::expected<std::unique_ptr<journal_store>> journal_store::open(const options& opts) {
  if (opts.retain_records == 0)
    return make_error(errc::invalid_argument, "the journal must retain at least one record, not 0");
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
  auto known = operation(*key);
  if (!known)
    return std::move(known.error());
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

} // namespace ringmaster
