// Records of a journal: read, and shown in every form.
#include "diagnosis/findings/diagnosis.hpp"
#include "diagnosis/readers/journal_records.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/journal/journal_store.hpp"
#include "runtime/journal/queries/journal_page.hpp"
#include "runtime/journal/record_bytes.hpp"
#include "runtime/journal/record_text.hpp"
#include "runtime/journal/traces/trace.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace ringmaster::fuzz {

namespace {

void show(const proto::Record& record) {
  const auto line = text_of(record);
  ensure(line.find('\n') == std::string::npos, "a record is one line");
  (void)text_of(record, {.relative_to_ns = 1, .ranks_took_ns = 1});
  (void)day_of(record, std::chrono::hours{1});
  (void)tone_of(record);
  const auto json = json_of(record);
  ensure(json.find('\n') == std::string::npos, "a record's JSON is one line");
  ensure(!check_kind(std::string{kind_of(record)}), "each record has a kind");
}

/// A part for each record.
void read_records(std::string_view bytes) {
  std::vector<proto::Record> records;
  for (input_parts parts{bytes}; !parts.empty();) {
    proto::Record record;
    const auto part = parts.part();
    if (!record.ParseFromArray(part.data(), static_cast<int>(part.size())))
      return;
    show(record);
    records.push_back(std::move(record));
  }
  (void)digest_of(records);
  (void)trace_of(records);
  (void)latest_trace_of(records, records, 1000);
  (void)diagnosis::diagnose(diagnosis::journal_job(records));
  auto journal = make_memory_journal({});
  if (journal->append(records))
    return;
  (void)journal->operations();
  (void)journal_page(*journal, {});
}

const fuzz_target fuzz_journal_records{"journal_records", read_records};

} // namespace

} // namespace ringmaster::fuzz
