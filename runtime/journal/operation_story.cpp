#include "runtime/journal/operation_story.hpp"

#include "runtime/health/verdict_text.hpp"
#include "runtime/journal/record_text.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace ringmaster {

namespace {

using proto::Record;

/// One attempt: from its start to the epoch that stopped it, or to its end.
struct story_attempt {
  uint64_t started_ns = 0;
  uint64_t ended_ns = 0;
  uint64_t epoch = 0;
  uint32_t ranks = 0;
  std::vector<const proto::RankReport*> done, interrupted;
};

/// Writes the story line by line.
class operation_story {
public:
  operation_story(std::span<const Record> records, operation_key which, std::chrono::seconds utc_offset)
    : records_(records), which_(which), utc_offset_(utc_offset) {}

  std::string text() {
    find_bounds();
    if (first_ns_ == 0)
      return {};
    for (auto& record : records_)
      if (concerns_it(record))
        tell(record);
    std::string result = title() + '\n';
    std::ranges::stable_sort(lines_, {}, &story_line::time_ns); // a verdict is recorded when all is done about it
    for (auto& line : lines_)
      result += fmt::format(
        "  {:>9}  {}\n", line.time_ns <= first_ns_ ? "+0" : "+" + duration_text(line.time_ns - first_ns_), line.text);
    for (auto& line : durations())
      result += line + '\n';
    return result;
  }

private:
  bool is_it(const Record& record) const { return operation_of(record) == which_; }

  bool is_about_it(const proto::Verdict& x) const {
    auto& done = x.outcome();
    const auto has = [this](auto& list) { return std::ranges::find(list, which_.sequence.value) != list.end(); };
    return x.sequence() == which_.sequence.value || has(done.rerun()) || has(done.failed());
  }

  void find_bounds() {
    for (auto& record : records_) {
      const bool counts = is_it(record) || (record.has_verdict() && is_about_it(record.verdict()));
      if (!counts)
        continue;
      if (first_ns_ == 0)
        first_ns_ = record.time_ns();
      last_ns_ = record.time_ns();
      if (record.has_operation_enqueued())
        called_ = &record.operation_enqueued();
      if (record.has_operation_ended())
        ended_ = &record.operation_ended();
    }
    if (called_ != nullptr && ended_ == nullptr && !records_.empty())
      last_ns_ = records_.back().time_ns(); // it has not ended
  }

  bool concerns_it(const Record& record) const {
    if (record.has_verdict())
      return is_about_it(record.verdict());
    if (is_it(record))
      return true;
    const bool meanwhile = record.time_ns() >= first_ns_ && record.time_ns() <= last_ns_ && called_ != nullptr;
    return meanwhile
           && (record.has_epoch_opened() || record.has_communicator_aborted() || record.has_communicator_destroyed());
  }

  std::string title() const {
    const auto name = fmt::format("operation {} of communicator {}", which_.sequence.value, which_.communicator.value);
    if (called_ == nullptr)
      return name + ": it never started";
    const bool is_auto = called_->request().collective().algorithm() == "auto";
    return fmt::format("{}: {}{}", name, call_text(*called_), is_auto ? algorithm_text() : "");
  }

  /// ", by ring": which algorithm "auto" was.
  std::string algorithm_text() const {
    return ended_ == nullptr || ended_->algorithm().empty() || ended_->algorithm() == "auto"
             ? ""
             : fmt::format(", by {}", ended_->algorithm());
  }

  void add(const Record& at, std::string_view what) { lines_.push_back({at.time_ns(), std::string{what}}); }
  /// To the latest line.
  void add_more(std::string_view what) { lines_.back().text += fmt::format("\n             {}", what); }

  void tell(const Record& record) {
    switch (record.event_case()) {
      case Record::kOperationEnqueued: {
        add(record, fmt::format("at {} on {}: {}", time_of(record, utc_offset_), day_of(record, utc_offset_),
                                record.operation_enqueued().by_ranks() ? "the last of its ranks called it"
                                                                       : "the host called it for all ranks"));
        break;
      }
      case Record::kOperationStarted: return tell(record, record.operation_started());
      case Record::kRankEnded: return tell(record, record.rank_ended());
      case Record::kVerdict: return tell(record, record.verdict());
      case Record::kEpochOpened: return tell(record, record.epoch_opened());
      case Record::kOperationEnded: return tell(record, record.operation_ended());
      case Record::kCommunicatorAborted:
      case Record::kCommunicatorDestroyed:
        close_attempt(record.time_ns());
        add(record, sentence_of(record));
        break;
      default: break; // copies of inputs, by the host
    }
  }

  void tell(const Record& record, const proto::OperationStarted& x) {
    close_attempt(record.time_ns());
    attempts_.push_back({record.time_ns(), 0, x.epoch(), x.world_size(), {}, {}});
    add(record, fmt::format("attempt {} starts in epoch {} over {}", attempts_.size(), x.epoch(),
                            counted(x.world_size(), "rank")));
  }

  void tell(const Record& record, const proto::RankReport& x) {
    if (x.phase() == proto::RankReport::BROKEN)
      add(record, fmt::format("rank {} (device {:#x}) broke off: {}", x.rank(), x.device_id(), x.error()));
    for (auto& attempt : attempts_)
      if (attempt.epoch == x.epoch())
        (x.phase() == proto::RankReport::COMMITTED ? attempt.done : attempt.interrupted).push_back(&x);
  }

  void tell(const Record& record, const proto::Verdict& x) {
    constexpr int waits_max = 8;
    auto at = record;
    at.set_time_ns(x.time_ns() == 0 ? record.time_ns() : std::min(x.time_ns(), record.time_ns()));
    add(at, fmt::format("VERDICT {}: {}", name_of(x.kind()), ringmaster::text_of(x)));
    for (int i = 0; i < std::min(x.waits_size(), waits_max); ++i) {
      auto& wait = x.waits(i);
      add_more(fmt::format("rank {} waited for rank {}: {}", wait.rank(), fmt::join(wait.waits_for(), ", "),
                           wait.what()));
    }
    if (x.waits_size() > waits_max)
      add_more(fmt::format("and {}", counted(static_cast<uint64_t>(x.waits_size() - waits_max), "other rank")));
  }

  void tell(const Record& record, const proto::EpochOpened& x) {
    close_attempt(record.time_ns());
    const bool again = std::ranges::find(x.rerun(), which_.sequence.value) != x.rerun().end();
    add(record,
        fmt::format("epoch {} opens over {}{}", x.epoch(), counted(static_cast<uint64_t>(x.device_ids_size()), "rank"),
                    again ? "; it runs again" : ""));
  }

  void tell(const Record& record, const proto::OperationEnded& x) {
    close_attempt(record.time_ns());
    tell_ranks(record);
    if (!x.device_ids().empty())
      add(record, "the data went from memory to memory (shared memory)");
    add(record, x.status() == gpu_sim::SUCCESS
                  ? fmt::format("it succeeded in epoch {}, at attempt {}", x.epoch(), std::max(1u, x.attempts()))
                  : fmt::format("it FAILED: {}", x.error()));
  }

  /// What the ranks of the last attempt reported.
  void tell_ranks(const Record& record) {
    if (attempts_.empty() || attempts_.back().done.empty())
      return;
    auto& done = attempts_.back().done;
    const auto took = [](const proto::RankReport* x) {
      return x->ended_ns() - std::min(x->started_ns(), x->ended_ns());
    };
    const auto [fast, slow] = std::ranges::minmax(done, {}, took);
    std::map<std::string, uint64_t> routes;
    for (const auto* x : done)
      for (auto& route : x->received())
        routes[route.route()] += route.bytes();
    std::vector<std::string> parts;
    for (auto& [route, bytes] : routes)
      parts.push_back(fmt::format("{} by {}", bytes_text(bytes), route));
    add(record, fmt::format("{} of {} ranks have their result: rank {} took {}, rank {} took {}{}{}", done.size(),
                            attempts_.back().ranks, fast->rank(), duration_text(took(fast)), slow->rank(),
                            duration_text(took(slow)), parts.empty() ? "" : "; received ", fmt::join(parts, ", ")));
  }

  void close_attempt(uint64_t now_ns) {
    if (!attempts_.empty() && attempts_.back().ended_ns == 0)
      attempts_.back().ended_ns = now_ns;
  }

  /// "took 840 ms: 0.1 ms until it started, attempt 1 815 ms, attempt 2 25 ms".
  std::vector<std::string> durations() {
    if (called_ == nullptr)
      return {};
    if (ended_ == nullptr)
      return {"  it has not ended, as far as the journal goes"};
    std::vector<std::string> parts;
    uint64_t before = first_ns_;
    for (size_t i = 0; i < attempts_.size(); ++i) {
      auto& x = attempts_[i];
      if (x.started_ns > before)
        parts.push_back(fmt::format("{} {}", duration_text(x.started_ns - before),
                                    i == 0 ? "until it started" : "between attempts"));
      parts.push_back(fmt::format("{} attempt {}", duration_text(x.ended_ns - std::min(x.started_ns, x.ended_ns)),
                                  i + 1));
      before = std::max(x.ended_ns, x.started_ns);
    }
    if (last_ns_ > before)
      parts.push_back(fmt::format("{} until its end was recorded", duration_text(last_ns_ - before)));
    return {fmt::format("  it took {}: {}", duration_text(last_ns_ - first_ns_), fmt::join(parts, ", "))};
  }

  std::span<const Record> records_;
  operation_key which_;
  std::chrono::seconds utc_offset_;
  uint64_t first_ns_ = 0, last_ns_ = 0;
  const proto::OperationEnqueued* called_ = nullptr;
  const proto::OperationEnded* ended_ = nullptr;
  std::vector<story_attempt> attempts_;
  struct story_line {
    uint64_t time_ns = 0;
    std::string text;
  };
  std::vector<story_line> lines_;
};

} // namespace

std::string story_of(std::span<const Record> records, operation_key which, std::chrono::seconds utc_offset) {
  return operation_story{records, which, utc_offset}.text();
}

} // namespace ringmaster
