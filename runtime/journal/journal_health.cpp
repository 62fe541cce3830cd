#include "runtime/journal/journal_health.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <utility>

namespace ringmaster {

void journal_health::failing(const caf::error& failure) {
  std::lock_guard guard{mutex_};
  failure_ = failure;
  if (failure)
    last_failure_ = failure;
}

void journal_health::lost(uint64_t records, std::optional<std::string> cause) {
  std::lock_guard guard{mutex_};
  ensure(lost_ + records >= lost_, "the count of lost records never falls");
  lost_ += records;
  if (cause)
    loss_ = std::move(cause);
}

void journal_health::waiting(uint64_t records) {
  std::lock_guard guard{mutex_};
  waiting_ = records;
}

uint64_t journal_health::records_lost() const {
  std::lock_guard guard{mutex_};
  return lost_;
}

caf::error journal_health::trouble() const {
  std::lock_guard guard{mutex_};
  const auto waits = counted(waiting_, "record") + (waiting_ == 1 ? " waits" : " wait") + " in memory";
  if (lost_ == 0)
    return failure_ ? make_error(errc::io_error, fmt::format("the journal cannot be written{}: {}",
                                                             waiting_ == 0 ? "" : ", and " + waits, render(failure_)))
                    : caf::error{};
  auto text = fmt::format("the journal lacks {}", counted(lost_ + waiting_, "record"));
  if (waiting_ != 0)
    text += fmt::format(" ({} lost, {})", lost_, waits);
  if (failure_)
    text += ", and cannot be written: " + render(failure_);
  else if (loss_)
    text += ": " + *loss_;
  else if (last_failure_)
    text += ", from a time when it could not be written: " + render(last_failure_);
  return make_error(errc::io_error, std::move(text));
}

} // namespace ringmaster
