// What a TRAINER does when a rank is lost, comes or leaves: the attempt is given up, and the next one begins with what
// is left.
#include "actors/training/trainer.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/memory/mapped_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::training {

void trainer_state::recover(const caf::error& why) {
  now_ = phase::recovering;
  if (why) {
    latest_problem_ = why;
    settings_.watcher.note(fmt::format("step {} is given up: {}", step_, render(why)));
  }
  ++attempt_;
  news_ = self->clock().now();
  abandoning_ = 1;
  gives_up_.clear();
  for (auto& each : members_)
    if (each.ready) {
      gives_up_.insert(each.device);
      have_given_up(each);
      ask_after(each.device);
    }
  const bool hands_over = !why && std::ranges::any_of(members_, &member::leaves);
  if (calls_ && !hands_over) // else behind that: with its last communicator a node that is drained ends
    end_calls();
  abandoned();
}

void trainer_state::end_calls() {
  ++abandoning_;
  calls_->end([this, attempt = attempt_](const caf::error& problem) {
    if (attempt != attempt_ || now_ != phase::recovering)
      return;
    calls_.reset();
    if (problem && !ending_) // what the next attempt computes could be overwritten
      end_with_model(problem);
    abandoned();
  });
}

void trainer_state::have_given_up(const member& each) {
  auto done = [this, attempt = attempt_, device = each.device] {
    if (attempt == attempt_)
      given_up_by(device);
  };
  self->request(each.handle, settings_.patience, step_abandoned{attempt_})
    .then([done](uint64_t) { done(); },
          [this, done, attempt = attempt_, device = each.device](const caf::error& problem) {
            if (attempt == attempt_ && problem == caf::sec::request_timeout)
              drop(device, make_error(errc::timed_out, "its rank did not give up its step in time")); // it hangs
            done();
          });
}

void trainer_state::ask_after(device_id device) {
  ++abandoning_;
  ask_whether_lost(device, [this, attempt = attempt_, device](const caf::error& lost) {
    if (attempt != attempt_ || now_ != phase::recovering)
      return;
    if (lost)
      drop(device, lost);
    abandoned();
  });
}

void trainer_state::drop(device_id device, const caf::error& lost) {
  auto found = std::ranges::find(members_, device, &member::device);
  if (found == members_.end())
    return; // its rank has ended, too
  const auto why = fmt::format("{} is lost: {}", ringmaster::text_of(device), cause_of(lost));
  settings_.watcher.note(why);
  leave_out(*found, why);
  members_.erase(found);
  ++may_return_; // its process may stand still
  given_up_by(device);
  hand_over_anew();
}

void trainer_state::given_up_by(device_id device) {
  if (gives_up_.erase(device) > 0)
    begin_again();
}

void trainer_state::abandoned() {
  ensure(abandoning_ > 0, "what is given up is counted");
  --abandoning_;
  begin_again();
}

void trainer_state::begin_again() {
  if (abandoning_ > 0 || !gives_up_.empty() || now_ != phase::recovering)
    return;
  self->delayed_send(self, breath, atom::resume_v, attempt_);
}

void trainer_state::go_on(uint64_t attempt) {
  if (attempt != attempt_ || now_ != phase::recovering)
    return;
  if (ending_)
    return take_last_image();
  if (hand_over())
    return;
  if (calls_)
    return end_calls();
  joins_ = false;
  look_for_devices();
  find_model();
  if (step_ == settings_.steps)
    return finish();
  const bool lacks_image = image_.step != step_ || (shows_model_of(step_) && shown_ != step_);
  if (std::exchange(image_asked_in_, attempt_) != attempt_ && lacks_image)
    keep_model(); // whoever was lost may have been asked for a part of it
  begin_step();
}

} // namespace ringmaster::training
