#include "gateway/http/state/journal_search.hpp"

#include "gateway/http/state/record_json.hpp"
#include "runtime/journal/record_text.hpp"
#include "runtime/text/utf8.hpp"

#include <algorithm>
#include <deque>

namespace ringmaster::gateway {

namespace {

/// Case of ASCII letters does not matter.
bool contains(const std::string& text, const std::string& part) {
  return lower_case(text).find(lower_case(part)) != std::string::npos;
}

proto::JournalTailRequest request_of(const journal_query& x) {
  proto::JournalTailRequest result;
  result.set_after(x.after);
  result.set_forward(x.forward);
  result.set_before(x.before);
  result.set_kind(x.kind);
  result.set_comm_id(x.communicator.value);
  result.set_device_id(x.device.value);
  // Of a search for a text most records are dropped here.
  result.set_records_max(x.text.empty() ? x.limit : 5000);
  return result;
}

/// What was found and searched so far.
struct findings {
  std::deque<std::pair<uint64_t, proto::Record>> records;
  uint64_t first_index = 1;
  uint64_t last_index = 0;
  uint64_t oldest = 0; ///< The records from here to `newest` were searched; 0: none.
  uint64_t newest = 0;
};

/// Takes the records of a page that the query selects, in the direction of the search, up to its limit.
void take(proto::JournalTailResponse& page, const journal_query& query, findings& found) {
  found.first_index = page.first_index();
  found.last_index = page.last_index();
  if (page.searched_last() == 0)
    return;
  found.oldest = found.oldest == 0 ? page.searched_first() : std::min(found.oldest, page.searched_first());
  found.newest = std::max(found.newest, page.searched_last());
  const auto count = page.records_size();
  for (int i = 0; i < count; ++i) {
    const auto at = query.forward ? i : count - 1 - i;
    if (!contains(sentence_of(page.records(at)), query.text))
      continue;
    if (found.records.size() == query.limit) { // the next request finds this one again
      (query.forward ? found.newest : found.oldest) = page.indices(at) - (query.forward ? 1 : -1);
      return;
    }
    std::pair entry{page.indices(at), std::move(*page.mutable_records(at))};
    if (query.forward)
      found.records.push_back(std::move(entry));
    else
      found.records.push_front(std::move(entry));
  }
}

bool has_more(const journal_query& query, const findings& found) {
  return found.newest != 0
         && (query.forward ? found.newest < found.last_index
                           : found.oldest > std::max(found.first_index, query.after + 1));
}

} // namespace

caf::expected<json> search_journal(cluster_source& source, const journal_query& query,
                                   std::chrono::milliseconds within) {
  const auto deadline = std::chrono::steady_clock::now() + within;
  auto request = request_of(query);
  findings found;
  do {
    auto page = source.journal(request);
    if (!page)
      return std::move(page.error());
    take(*page, query, found);
    if (page->searched_last() == 0 || found.records.size() >= query.limit)
      break;
    if (query.forward)
      request.set_after(found.newest);
    else
      request.set_before(found.oldest);
  } while (has_more(query, found) && std::chrono::steady_clock::now() < deadline);
  auto list = json::array();
  for (auto& [index, record] : found.records)
    list.push_back(record_json(index, record));
  return json{{"first", found.first_index}, {"last", found.last_index}, {"records", std::move(list)},
              {"oldest", found.oldest},     {"newest", found.newest},   {"more", has_more(query, found)}};
}

} // namespace ringmaster::gateway
