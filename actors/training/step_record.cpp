#include "actors/training/step_record.hpp"

#include "actors/calls/answers.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ringmaster::training {

void step_record::put(proto::TrainingStep x, const running_step& step, std::string_view strategy_name,
                      const step_report& report) {
  ensure(!latest_, "a step is recorded after the one before");
  ensure(is_kept_, "steps are recorded while there is a journal");
  for (auto device : step.devices)
    x.add_device_ids(device.value);
  x.set_strategy(std::string{strategy_name});
  x.set_attempts(report.attempts);
  x.set_loss(report.loss);
  x.set_seconds(report.seconds);
  const auto number = ++recordings_;
  latest_ = {number, x.step(), self_->clock().now() + settings_.limit};
  self_->send(settings_.coordinator, std::move(x));
  proto::JournalFlushRequest written;
  written.set_unsynced(true);
  self_
    ->request(settings_.coordinator, caf::infinite, written) // `expire` has the limit
    .then([this, number](const proto::JournalFlushResponse& y) { answered(number, error_in(y)); },
          [this, number](const caf::error& problem) { answered(number, problem); });
}

void step_record::answered(uint64_t number, const caf::error& problem) {
  if (!latest_ || latest_->number != number)
    return; // too late
  const auto step = std::exchange(latest_, std::nullopt)->step;
  if (code_of(problem) == errc::refused)
    is_kept_ = false;
  else
    note_change(step, problem);
  settings_.confirmed();
}

void step_record::note_change(uint64_t step, const caf::error& problem) {
  if (problem)
    missing_ = {!problem_ ? step : std::min(missing_.begin, step), std::max(missing_.end, step + 1)};
  else
    missing_ = {};
  ensure(!problem || (missing_.begin <= step && step < missing_.end), "a step that is not recorded is missing");
  const auto before = std::exchange(problem_, problem);
  if (problem && (!before || render(before) != render(problem)))
    settings_.note(fmt::format("the journal may lack step {}, and training goes on: {}", step, render(problem)));
  else if (!problem && before)
    settings_.note("the journal has the steps again");
}

bool step_record::expire() {
  if (!latest_ || self_->clock().now() < latest_->due)
    return false;
  answered(latest_->number,
           make_error(errc::timed_out, fmt::format("the coordinator did not say within {} whether the journal has it",
                                                   duration_text(settings_.limit))));
  return true;
}

void step_record::excuse(caf::timespan late) {
  if (latest_)
    latest_->due += late;
}

void step_record::note_missing() const {
  if (!problem_)
    return;
  const auto end = std::max(missing_.end, latest_ ? latest_->step + 1 : 0);
  const auto which = missing_.begin + 1 == end ? fmt::format("step {}", missing_.begin)
                                               : fmt::format("steps {} to {}", missing_.begin, end - 1);
  settings_.note(fmt::format("the journal lacks {} so far: {}", which, render(problem_)));
}

} // namespace ringmaster::training
