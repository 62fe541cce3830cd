#include "runtime/journal/journal_health.hpp"

#include "messages/errc.hpp"
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
  lost_ += records;
  if (cause)
    loss_ = std::move(cause);
}

uint64_t journal_health::records_lost() const {
  std::lock_guard guard{mutex_};
  return lost_;
}

caf::error journal_health::trouble() const {
  std::lock_guard guard{mutex_};
  if (lost_ == 0)
    return failure_ ? make_error(errc::io_error, "the journal cannot be written: " + render(failure_)) : caf::error{};
  auto text = fmt::format("the journal lacks {}", counted(lost_, "record"));
  if (failure_)
    text += ", and cannot be written: " + render(failure_);
  else if (loss_)
    text += ": " + *loss_;
  else if (last_failure_)
    text += ", from a time when it could not be written: " + render(last_failure_);
  return make_error(errc::io_error, std::move(text));
}

} // namespace ringmaster
