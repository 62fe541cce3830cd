#include "actors/training/steps/run_progress.hpp"

#include <fmt/format.h>

namespace ringmaster::training {

void run_progress::enter(phase next) {
  const bool is_legal = next == phase::stepping     ? phase_ != phase::finishing && !is_over()
                        : next == phase::recovering ? is_running()
                        : next == phase::finishing  ? phase_ == phase::stepping || phase_ == phase::recovering
                                                    : next == phase::over && !is_over();
  ensure(is_legal, "a phase follows one that it may follow");
  ensure(next != phase::finishing || all_steps_are_done(), "a run finishes after its last step");
  phase_ = next;
}

void run_progress::step_committed() {
  ensure(phase_ == phase::stepping, "a step that counts was under way");
  ensure(!ending_, "no step counts in a run that is to end");
  ++step_;
  attempts_ = 0;
  ensure(step_ <= steps_, "no more steps count than the run has");
}

void run_progress::go_back(uint64_t step) {
  ensure(step <= step_, "a snapshot is of a step that was committed");
  step_ = step;
  attempts_ = 0;
}

void run_progress::set_ending(const caf::error& why) {
  ensure(static_cast<bool>(why), "a run ends before its last step for a reason");
  ending_ = why;
}

void run_progress::check() const {
  ensure(step_ <= steps_, "no more steps count than the run has");
  ensure(phase_ != phase::gathering || attempt_ == 0, "no attempt starts before all ranks are ready");
  ensure(phase_ != phase::finishing || all_steps_are_done(), "a run finishes after its last step");
}

std::string run_progress::state_text() const {
  constexpr std::string_view phases[] = {"gathering", "stepping", "recovering", "finishing", "over"};
  return fmt::format("step {} of {} is {}, attempt {} ({} of this step){}", step_, steps_,
                     phases[static_cast<size_t>(phase_)], attempt_, attempts_, ending_ ? ", to end" : "");
}

} // namespace ringmaster::training
