#include "runtime/health/suspicion.hpp"

#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

suspicion::suspicion(options opts) : options_(opts) {
  ensure(opts.late > 0 && opts.late <= opts.window, "a suspicion needs some of the last answers to be late");
}

void suspicion::on_request(uint64_t number, time_point now) {
  expire(now);
  ensure(pending_.empty() || pending_.back().number < number, "requests have rising numbers");
  pending_.push_back({number, now});
}

void suspicion::on_answer(uint64_t number, duration busy_for, time_point now) {
  auto answered = std::find_if(pending_.begin(), pending_.end(), [&](const request& x) { return x.number == number; });
  if (answered == pending_.end())
    return;
  auto took = std::chrono::duration_cast<duration>(now - answered->since);
  auto busy = fresh_since_ ? std::min<duration>(busy_for, now - *fresh_since_) : busy_for;
  auto late = std::max(took, busy) > options_.late_after;
  if (late)
    latest_ = took > options_.late_after ? lateness{proto::Suspicion::SLOW_ANSWER, *answered, took}
                                         : lateness{proto::Suspicion::BUSY, *answered, busy};
  pending_.erase(answered);
  count(late);
}

suspicion::verdict suspicion::evaluate(time_point now) {
  expire(now);
  auto late = latest_answers().late;
  ensure(late <= outcomes_.size(), "no more answers are late than there were");
  if (late == 0)
    return {};
  auto evidence = evidence_at(now);
  return {late >= options_.late, text_of(evidence), std::move(evidence)};
}

void suspicion::excuse(duration pause, time_point now) {
  if (pause > options_.late_after)
    return forgive_pending(now);
  for (auto& waiting : pending_)
    waiting.since = std::min(now, waiting.since + std::chrono::duration_cast<time_point::duration>(pause));
}

void suspicion::forgive_pending(time_point now) {
  fresh_since_ = now;
  for (auto& waiting : pending_)
    waiting.since = now;
}

void suspicion::start_afresh(time_point now) {
  forgive_pending(now);
  outcomes_.clear();
}

/// Counts what has waited too long. This also bounds the queue: nothing stays longer than `late_after`.
void suspicion::expire(time_point now) {
  while (!pending_.empty() && now - pending_.front().since > options_.late_after) {
    latest_ = {proto::Suspicion::NO_ANSWER, pending_.front(), {}};
    pending_.pop_front();
    count(true);
  }
}

suspicion::record suspicion::latest_answers() const {
  return {static_cast<uint32_t>(std::count(outcomes_.begin(), outcomes_.end(), true)),
          static_cast<uint32_t>(outcomes_.size())};
}

void suspicion::count(bool late) {
  outcomes_.push_back(late);
  if (outcomes_.size() > options_.window)
    outcomes_.pop_front();
  ensure(outcomes_.size() <= options_.window, "only the latest answers count");
}

proto::Suspicion suspicion::evidence_at(time_point now) const {
  const auto [late, answers] = latest_answers();
  proto::Suspicion result;
  result.set_cause(latest_.cause);
  result.set_request(latest_.late.number);
  const duration length = latest_.cause == proto::Suspicion::NO_ANSWER ? now - latest_.late.since : latest_.after;
  result.set_length_ns(static_cast<uint64_t>(length.count()));
  result.set_late(late);
  result.set_answers(answers);
  return result;
}

std::string text_of(const proto::Suspicion& x) {
  const auto length_s = static_cast<double>(x.length_ns()) / 1e9;
  std::string cause;
  switch (x.cause()) {
    case proto::Suspicion::NO_ANSWER:
      cause = fmt::format("no answer to request {} for {:.1f} s", x.request(), length_s);
      break;
    case proto::Suspicion::SLOW_ANSWER:
      cause = fmt::format("the answer to request {} took {:.1f} s", x.request(), length_s);
      break;
    case proto::Suspicion::BUSY:
      cause = fmt::format("by its answer to request {} it had owed the next move for {:.1f} s", x.request(), length_s);
      break;
    case proto::Suspicion::PROCESS_SILENT: return fmt::format("its process has not answered for {:.1f} s", length_s);
    default: cause = "for a reason that this version does not know"; break;
  }
  return fmt::format("{} of its last {} answers {} late ({})", x.late(), x.answers(), x.late() == 1 ? "was" : "were",
                     cause);
}

} // namespace ringmaster
