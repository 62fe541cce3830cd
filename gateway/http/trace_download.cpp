#include "gateway/http/trace_download.hpp"

#include "runtime/journal/traces/trace.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

namespace ringmaster::gateway {

namespace {

using records = std::vector<proto::Record>;

/// The records of one kind before an index: nodes and devices, whose names the tracks have.
caf::error read_kind(cluster_source& source, const std::string& kind, uint64_t before, records& to) {
  constexpr uint32_t records_max = 10'000;
  proto::JournalTailRequest request;
  request.set_records_max(records_max);
  request.set_kind(kind);
  request.set_before(before);
  request.set_forward(true);
  for (;;) {
    auto page = source.journal(request);
    if (!page)
      return std::move(page.error());
    if (page->searched_last() == 0)
      return caf::none;
    std::ranges::move(*page->mutable_records(), std::back_inserter(to));
    request.set_after(page->searched_last());
  }
}

} // namespace

caf::expected<std::string> trace_of_journal(cluster_source& source, uint64_t last) {
  constexpr uint64_t page_records = 10'000;
  std::vector<records> pages; // newest first
  uint64_t count = 0, before = 0;
  while (count < last) {
    proto::JournalTailRequest request;
    request.set_records_max(static_cast<uint32_t>(std::min(last - count, page_records)));
    request.set_before(before);
    auto page = source.journal(request);
    if (!page)
      return std::move(page.error());
    if (page->searched_last() == 0)
      break;
    count += static_cast<uint64_t>(page->records_size());
    before = page->searched_first();
    std::ranges::move(*page->mutable_records(), std::back_inserter(pages.emplace_back()));
  }
  records shown, context;
  for (auto page = pages.rbegin(); page != pages.rend(); ++page)
    std::ranges::move(*page, std::back_inserter(shown));
  if (before > 1)
    for (const auto* kind : {"node", "device"})
      if (auto err = read_kind(source, kind, before, context))
        return err;
  context.insert(context.end(), shown.begin(), shown.end());
  return latest_trace_of(shown, context, trace_bytes_max).json;
}

} // namespace ringmaster::gateway
