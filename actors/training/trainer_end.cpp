// How a TRAINER's run ends: behind its last step, when it is told to, or when it cannot go on; most often with the
// model.
#include "actors/training/trainer.hpp"

#include <fmt/format.h>

namespace ringmaster::training {

void trainer_state::stop_requested() {
  end_with_model(ending_ ? ending_ : make_error(errc::aborted, "the run was told to end"));
}

void trainer_state::end_with_model(const caf::error& why) {
  if (now_ == phase::over)
    return;
  const bool is_new = settings_.image_every != 0 && shown_ != step_ && now_ != phase::gathering;
  if (!is_new)
    return end_run(why);
  if (std::exchange(ending_, why))
    return end_without_model(fmt::format("not all of it has come within {} s", ending_limit / std::chrono::seconds{1}));
  if (image_.step == step_ && !image_.parts.empty()) {
    show(image_);
    return end_run(why);
  }
  self->delayed_send(self, ending_limit, atom::expire_v);
  if (now_ != phase::recovering && step_ != settings_.steps) // else go_on does, or it is under way
    take_last_image();
}

void trainer_state::take_last_image() {
  take_image([this](const caf::expected<model_image>& x) {
    if (now_ == phase::over)
      return;
    if (!x && parts().whole()) // another one has what did not come
      return take_last_image();
    if (!x)
      return end_without_model(render(x.error()));
    show(*x);
    end_run(ending_);
  });
}

void trainer_state::end_without_model(const std::string& why) {
  settings_.watcher.note(fmt::format("the model as of step {} cannot be kept: {}", step_, why));
  end_run(ending_);
}

void trainer_state::finish() {
  now_ = phase::stepping;
  if (++attempts_ > settings_.attempts_max)
    return end_run(make_error(errc::gave_up, fmt::format("the model cannot be put together: {}", latest_problem())));
  take_image([this, attempt = ++attempt_](const caf::expected<model_image>& x) {
    if (!is_current(attempt))
      return;
    if (!x)
      return recover(x.error());
    if (settings_.image_every != 0)
      show(*x);
    end_run(caf::none);
  });
}

void trainer_state::end_run(const caf::error& problem) {
  if (std::exchange(now_, phase::over) == phase::over)
    return;
  if (record_)
    record_->tell_missing();
  ++attempt_;
  auto over = [this, problem](const caf::error& unended) { // no stream touches the ranks' memory any more
    if (unended)
      settings_.watcher.note(render(unended));
    let_ranks_go([this, problem] {
      settings_.watcher.ended(problem ? caf::expected<model_image>{problem} : caf::expected<model_image>{image_});
      self->demonitor(settings_.coordinator.address()); // which lives on, and would keep this
      self->quit(problem);                              // ranks of other processes are told why
    });
  };
  if (calls_)
    calls_->end(over);
  else
    over(caf::none);
}

void trainer_state::let_go(const rank_actor& handle, std::function<void()> then) {
  self->demonitor(handle.address());
  self->request(handle, ending_limit, run_over{})
    .then([then](uint64_t) { then(); }, [this, then, handle](const caf::error&) { // it computes still, or is gone
      self->send_exit(handle, caf::exit_reason::user_shutdown);
      then();
    });
}

void trainer_state::let_ranks_go(std::function<void()> then) {
  auto left = std::make_shared<size_t>(members_.size() + 1);
  auto one_gone = [left, then] {
    if (--*left == 0)
      then();
  };
  for (auto& each : members_)
    if (each.handle)
      let_go(each.handle, one_gone);
    else
      one_gone();
  one_gone();
}

} // namespace ringmaster::training
