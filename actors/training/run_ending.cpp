#include "actors/training/run_ending.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

namespace ringmaster::training {

void run_ending::take_final_snapshot(uint64_t attempt) {
  snapshots_.take(change_.progress().step(), [this, attempt](const caf::expected<model_snapshot>& found) {
    if (!change_.progress().is_current(attempt))
      return;
    if (!found)
      return carry_out_(change_.give_up(found.error()));
    if (settings_->image_every != 0)
      snapshots_.report(*found);
    carry_out_(change_.end(caf::none));
  });
}

void run_ending::end_with_snapshot(const step_change::end_with_snapshot& x) {
  if (change_.progress().is_over())
    return;
  if (!snapshots_.is_wanted(x.step))
    return carry_out_(change_.end(x.why));
  if (x.repeated) {
    settings_->watcher.note(fmt::format("the model as of step {} could not be saved: not all of it arrived within {} s",
                                        x.step, snapshot_limit / std::chrono::seconds{1}));
    return carry_out_(change_.end(x.why));
  }
  if (snapshots_.has(x.step)) {
    snapshots_.report(snapshots_.latest());
    return carry_out_(change_.end(x.why));
  }
  self_->delayed_send(self_, snapshot_limit, atom::expire_v);
  if (x.at_once)
    take_last_snapshot();
}

void run_ending::take_last_snapshot() {
  const auto step = change_.progress().step();
  snapshots_.take(step, [this, step](const caf::expected<model_snapshot>& found) {
    if (change_.progress().is_over())
      return;
    if (!found && snapshots_.parts(step).whole()) // another rank has the part that did not arrive
      return take_last_snapshot();
    if (found)
      snapshots_.report(*found);
    else
      settings_->watcher.note(fmt::format("the model as of step {} could not be saved: {}", step,
                                          render(found.error())));
    carry_out_(change_.end(change_.progress().ending()));
  });
}

void run_ending::end(const std::shared_ptr<group_calls>& calls, const caf::error& problem) {
  ensure(change_.progress().is_over(), "a run that ends does nothing else");
  auto ended = [this, problem] {
    settings_->watcher.ended(problem ? caf::expected<model_snapshot>{problem}
                                     : caf::expected<model_snapshot>{snapshots_.latest()});
    self_->demonitor(settings_->coordinator.address()); // it lives on, and would keep this actor
    self_->quit(problem);                               // the reason reaches ranks of other processes
  };
  auto let_ranks_go = [this, ended](const caf::error& not_closed) { // none: no stream uses the ranks' memory
    if (not_closed)
      settings_->watcher.note(render(not_closed));
    ranks_.release_all(ended);
  };
  if (calls)
    calls->end(let_ranks_go);
  else
    let_ranks_go(caf::none);
}

} // namespace ringmaster::training
