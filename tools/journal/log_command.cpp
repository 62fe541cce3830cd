#include "tools/options/commands.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/journal/journal_store.hpp"
#include "runtime/journal/operation_story.hpp"
#include "runtime/journal/record_text.hpp"
#include "runtime/journal/traces/trace.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/console/output_file.hpp"
#include "tools/console/terminal.hpp"
#include "tools/journal/flight_recorder_files.hpp"
#include "tools/journal/log_options.hpp"
#include "tools/journal/log_samples.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <set>
#include <thread>

namespace ringmaster {
namespace {

// How often a followed journal is read.
constexpr std::chrono::milliseconds follow_interval{500};

std::chrono::seconds utc_offset(uint64_t time_ns) {
  auto seconds = static_cast<std::time_t>(time_ns / 1'000'000'000);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  return std::chrono::seconds{local.tm_gmtoff};
}

// Unlike fmt::print it does not throw if the reader has closed the pipe.
void put(std::FILE* out, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), out);
}

// Prints records as lines.
class log_printer {
public:
  log_printer(const log_options& opts, std::FILE* out) : options_(opts), out_(out), paint_(out) {}

  // `ranks_took_ns`: for an operation's end, if the journal has it. Returns false if the reader has closed the pipe.
  bool print(const proto::Record& record, std::optional<uint64_t> ranks_took_ns) {
    if (options_.json) {
      put(out_, json_of(record) + '\n');
    } else {
      record_text_options text;
      text.ranks_took_ns = ranks_took_ns;
      text.utc_offset = utc_offset(record.time_ns());
      if (options_.relative)
        text.relative_to_ns = base_ns_ = base_ns_.value_or(record.time_ns());
      else
        print_day(day_of(record, text.utc_offset));
      put(out_, painted(tone_of(record), text_of(record, text)) + '\n');
    }
    return std::ferror(out_) == 0;
  }

private:
  void print_day(std::string day) {
    if (day == day_)
      return;
    put(out_, day + '\n');
    day_ = std::move(day);
  }

  std::string painted(tone x, std::string text) const {
    switch (x) {
      case tone::good: return paint_.good(text);
      case tone::warning: return paint_.warning(text);
      case tone::bad: return paint_.bad(text);
      case tone::plain: break;
    }
    return text;
  }

  const log_options& options_;
  std::FILE* out_;
  terminal paint_;
  std::optional<uint64_t> base_ns_;
  std::string day_;
};

/// A missing journal is an io_error: the command line was correct.
caf::expected<std::unique_ptr<journal_store>> open_journal(const std::filesystem::path& dir) {
  auto result = journal_store::open_read_only(dir);
  if (!result && code_of(result.error()) == errc::invalid_argument)
    return make_error(errc::io_error, render(result.error()));
  return result;
}

// The time of the final attempt of an operation.
std::optional<uint64_t> ranks_took_ns(const journal_store& journal, const proto::Record& record) {
  if (!record.has_operation_ended())
    return {};
  auto known = journal.operation(*operation_of(record));
  if (!known || !*known || (*known)->ranks_ended_ns() <= (*known)->ranks_started_ns())
    return {};
  return (*known)->ranks_ended_ns() - (*known)->ranks_started_ns();
}

caf::error list(const log_options& opts, const console& to) {
  log_printer printer{opts, to.out};
  auto filter = opts.filter;
  bool any = false;
  for (auto reading = true; reading;) {
    TRY(journal, open_journal(opts.dir));
    auto err = (*journal)->read(filter, [&](uint64_t, proto::Record& record) {
      any = true;
      return reading = printer.print(record, ranks_took_ns(**journal, record));
    });
    if (err)
      return err;
    std::fflush(to.out);
    if (!opts.follow || !reading)
      break;
    filter.after = (*journal)->state().last_index();
    filter.last = 0;
    journal->reset();
    std::this_thread::sleep_for(follow_interval);
  }
  if (!any && !opts.json)
    fmt::print(to.err, "no record of {} matches{}\n", opts.dir.string(),
               filter.kind == "rank" ? "; shared-memory operations have one record for all ranks: --kind operation"
               : filter.kind == "fault"
                 ? "; faults are injected ones; lost devices and nodes are of --kind device and node"
                 : "");
  return caf::none;
}

caf::error export_trace(const log_options& opts, std::FILE* out) {
  TRY(journal, open_journal(opts.dir));
  TRY(all, (*journal)->read());
  TRY(shown, (*journal)->read(opts.filter));
  auto trace = latest_trace_of(*shown, *all, opts.trace_bytes_max.value_or(log_options::trace_bytes_default));
  RETURN_ERROR(write_output_file(opts.trace.string(), trace.json, "the trace"));
  put(out, fmt::format("Wrote {} and {} of {} to {}: open it in ui.perfetto.dev or chrome://tracing.\n",
                       counted(trace.slices, "slice"), counted(trace.instants, "event"),
                       counted(shown->size() - trace.omitted, "record"), opts.trace.string()));
  if (trace.omitted != 0)
    put(out, fmt::format("Left out the oldest {}: with them the trace would exceed --trace-limit. "
                         "Select others with --communicator, --device, --kind and --last.\n",
                         counted(trace.omitted, "record")));
  return caf::none;
}

caf::error export_dumps(const log_options& opts, std::FILE* out) {
  auto journal = open_journal(opts.dir);
  if (!journal)
    return std::move(journal.error());
  auto records = (*journal)->read(opts.filter);
  if (!records)
    return std::move(records.error());
  auto dumps = write_flight_recorder_files(*records, opts.flight_recorder);
  if (!dumps)
    return std::move(dumps.error());
  put(out, fmt::format("Wrote {} to {}: ringmaster diagnose {}\n", counted(*dumps, "dump"), opts.flight_recorder,
                       opts.flight_recorder));
  return caf::none;
}

caf::error list_samples(const log_options& opts, const console& to) {
  TRY(journal, open_journal(opts.dir));
  auto filter = opts.filter;
  filter.kind = "training";
  TRY(records, (*journal)->read(filter));
  TRY(text, samples_text(*records, opts.json));
  put(to.out, *text);
  if (text->empty() && !opts.json)
    fmt::print(to.err, "{} has no step of training\n", opts.dir.string());
  return caf::none;
}

/// "it has operations 1 to 17", or which communicators have any.
std::string known_operations(const std::vector<proto::OperationState>& all, communicator_id of) {
  uint64_t first = 0, last = 0;
  std::set<uint64_t> communicators;
  for (auto& x : all) {
    communicators.insert(x.comm_id());
    if (x.comm_id() != of.value)
      continue;
    first = first == 0 ? x.sequence() : std::min(first, x.sequence());
    last = std::max(last, x.sequence());
  }
  if (communicators.empty())
    return "the journal has no operations";
  if (last == 0)
    return fmt::format("there are operations of communicator {}", fmt::join(communicators, ", "));
  return fmt::format("communicator {} has operations {} to {}", of.value, first, last);
}

caf::error explain(const log_options& opts, std::FILE* out) {
  TRY(journal, open_journal(opts.dir));
  record_filter filter;
  filter.communicator = opts.explained->communicator;
  TRY(records, (*journal)->read(filter));
  const auto offset = records->empty() ? std::chrono::seconds{0} : utc_offset(records->back().time_ns());
  const auto story = story_of(*records, *opts.explained, offset);
  if (!story.empty()) {
    put(out, story);
    return caf::none;
  }
  TRY(all, (*journal)->operations());
  return invalid(fmt::format("{} knows no operation {}:{}: {}", opts.dir.string(), opts.explained->communicator.value,
                             opts.explained->sequence.value, known_operations(*all, opts.explained->communicator)));
}

class log_call final : public command_call {
  void declare(option_table& table) override { opts_.add_to(table); }
  caf::error check() override { return opts_.check(); }

  caf::expected<int> run(const console& to) override {
    RETURN_ERROR(opts_.explained                  ? explain(opts_, to.out)
                 : opts_.samples                  ? list_samples(opts_, to)
                 : !opts_.flight_recorder.empty() ? export_dumps(opts_, to.out)
                 : opts_.trace.empty()            ? list(opts_, to)
                                                  : export_trace(opts_, to.out));
    return exit_ok;
  }

  log_options opts_;
};

} // namespace

tool_command log_command() {
  return tool_command::of<log_call>("log", "a journal: list, filter, export as a trace");
}

} // namespace ringmaster
