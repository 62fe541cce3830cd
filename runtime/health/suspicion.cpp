#include "runtime/health/suspicion.hpp"

#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

suspicion::suspicion(options opts) : options_(opts) {
  ensure(opts.late > 0 && opts.late <= opts.window, "a suspicion needs some of the last answers to be late");
}

void suspicion::on_request(uint64_t number, time_point now) {
  observe(now);
  expire(now);
  ensure(pending_.empty() || pending_.back().number < number, "requests have rising numbers");
  pending_.push_back({number, now});
}

void suspicion::on_answer(uint64_t number, duration busy_for, time_point now) {
  observe(now);
  auto answered = std::find_if(pending_.begin(), pending_.end(), [&](const request& x) { return x.number == number; });
  if (answered == pending_.end())
    return;
  auto took = std::chrono::duration_cast<duration>(now - answered->since);
  auto busy = fresh_since_ ? std::min<duration>(busy_for, now - *fresh_since_) : busy_for;
  auto late = std::max(took, busy) > options_.late_after;
  if (late)
    latest_ = took > options_.late_after ? lateness{lateness::cause::slow_answer, *answered, took}
                                         : lateness{lateness::cause::busy, *answered, busy};
  pending_.erase(answered);
  count(late);
}

suspicion::verdict suspicion::evaluate(time_point now) {
  observe(now);
  expire(now);
  auto late = latest_answers().late;
  ensure(late <= outcomes_.size(), "no more answers are late than there were");
  return {late >= options_.late, late == 0 ? std::string{} : reason_at(now, late)};
}

/// Detects a pause of the observer itself.
void suspicion::observe(time_point now) {
  ensure(!last_seen_ || now >= *last_seen_, "time does not run backwards");
  if (last_seen_ && now - *last_seen_ > options_.interval + options_.late_after)
    forgive_pending(now);
  last_seen_ = now;
}

void suspicion::forgive_pending(time_point now) {
  fresh_since_ = now;
  for (auto& waiting : pending_)
    waiting.since = now;
}

void suspicion::start_afresh(time_point now) {
  observe(now);
  forgive_pending(now);
  outcomes_.clear();
}

/// Counts what has waited too long. This also bounds the queue: nothing stays longer than `late_after`.
void suspicion::expire(time_point now) {
  while (!pending_.empty() && now - pending_.front().since > options_.late_after) {
    latest_ = {lateness::cause::no_answer, pending_.front(), {}};
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

std::string suspicion::reason_at(time_point now, size_t late) const {
  auto seconds = [](duration x) { return std::chrono::duration<double>(x).count(); };
  std::string cause;
  switch (latest_.why) {
    case lateness::cause::no_answer:
      cause = fmt::format("no answer to request {} for {:.1f} s", latest_.late.number,
                          seconds(now - latest_.late.since));
      break;
    case lateness::cause::slow_answer:
      cause = fmt::format("the answer to request {} took {:.1f} s", latest_.late.number, seconds(latest_.after));
      break;
    case lateness::cause::busy:
      cause = fmt::format("by its answer to request {} it had owed the next move for {:.1f} s", latest_.late.number,
                          seconds(latest_.after));
      break;
  }
  return fmt::format("{} of its last {} answers {} late ({})", late, outcomes_.size(), late == 1 ? "was" : "were",
                     cause);
}

} // namespace ringmaster
