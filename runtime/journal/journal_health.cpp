#include "runtime/journal/journal_health.hpp"

#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

namespace ringmaster {

void journal_health::failing(const std::string& failure) {
  std::lock_guard guard{mutex_};
  failure_ = failure;
  if (!failure.empty())
    last_cause_ = failure;
}

void journal_health::lost(uint64_t records, const std::string& cause) {
  std::lock_guard guard{mutex_};
  lost_ += records;
  if (!cause.empty())
    loss_ = cause;
}

uint64_t journal_health::records_lost() const {
  std::lock_guard guard{mutex_};
  return lost_;
}

std::string journal_health::trouble() const {
  std::lock_guard guard{mutex_};
  if (lost_ == 0)
    return failure_.empty() ? "" : fmt::format("the journal cannot be written: {}", failure_);
  auto result = fmt::format("the journal lacks {}", counted(lost_, "record"));
  if (!failure_.empty())
    return fmt::format("{}, and cannot be written: {}", result, failure_);
  if (!loss_.empty())
    return fmt::format("{}: {}", result, loss_);
  return last_cause_.empty() ? result
                             : fmt::format("{}, from a time when it could not be written: {}", result, last_cause_);
}

} // namespace ringmaster
