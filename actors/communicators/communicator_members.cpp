// A COMMUNICATOR's members: what they report, which are lost, and which leave.
#include "actors/communicators/communicator_actions.hpp"

#include "actors/calls/answers.hpp"
#include "actors/communicators/journal_records.hpp"

#include <iterator>
#include <utility>

namespace ringmaster {

void communicator_state::change(const std::function<epoch_change::decisions(epoch_change&)>& event) {
  flush();
  carry_out(event(*epochs_));
}

void communicator_state::carry_out(epoch_change::decisions decisions) {
  epoch_is_announced_ = epoch_is_announced_ && !epochs_->state().is_changing();
  std::move(decisions.begin(), decisions.end(), std::back_inserter(decisions_));
  if (carrying_out_)
    return; // the loop below, further up the call stack, goes on with these
  carrying_out_ = true;
  while (!decisions_.empty()) {
    auto next = std::move(decisions_.front());
    decisions_.pop_front();
    std::visit(epoch_actions{*this}, next);
  }
  carrying_out_ = false;
  outbox_->flush_later(); // plans that have waited for this
  settle();
  if (epochs_->can_leave())
    change([](auto& epochs) { return epochs.let_leave(); });
  keep_ticking();
}

void communicator_state::on_down(const caf::down_msg& x) {
  if (options.coordinator && x.source == options.coordinator.address()) {
    self->quit(x.reason); // no client can reach it any longer, but an open request would keep it alive
    return;
  }
  if (const auto device = members_->device_of(x.source))
    lose(*device, render(x.reason), x.reason == caf::exit_reason::user_shutdown ? "" : "monitor", false);
}

void communicator_state::lose(device_id device, const std::string& cause, const std::string& noticed_by, bool fence) {
  if (!epochs_->members().contains(device) && !epochs_->leaving().contains(device))
    return;
  flush();
  if (options.coordinator) {
    proto::MemberLost lost;
    lost.set_comm_id(options.id.value);
    lost.set_device_id(device.value);
    lost.set_cause(cause);
    lost.set_noticed_by(noticed_by);
    lost.set_fence(fence);
    lost.set_noticed_ns(outbox_->unix_ns());
    self->send(options.coordinator, std::move(lost));
  }
  carry_out(epochs_->lost(device, cause, noticed_by.empty()));
}

void communicator_state::leave(const proto::LeaveRequest& x, client_waiters::leave_promise promise) {
  std::vector<device_id> devices;
  for (auto id : x.device_ids())
    if (epochs_->members().contains(device_id{id}))
      devices.push_back(device_id{id});
  const bool stay = x.reason().empty();
  const auto problem = stay ? caf::error{} : epochs_->ask_to_leave(devices, x.reason());
  if (stay || problem || devices.empty()) {
    auto answer = verdict<proto::LeaveResponse>(problem);
    answer.set_epoch(epochs_->epoch().value);
    promise.deliver(std::move(answer));
  } else {
    waiters_.add_leave({devices.begin(), devices.end()}, std::move(promise));
  }
  carry_out(stay ? epochs_->ask_to_stay(devices) : epoch_change::decisions{}); // they leave now if nothing is in flight
  run_waiting();
  serve_calls();
}

void communicator_state::on_quiesced(const proto::Quiesced& x) {
  const device_id device{x.device_id()};
  const epoch_number epoch{x.epoch()};
  if (epoch == epochs_->epoch() && !epochs_->has_stopped(device))
    watch_->note_progress(now());
  carry_out(epochs_->quiesced(device, epoch));
}

void communicator_state::on_report(const proto::RankReport& x) {
  if (x.phase() != proto::RankReport::FINISHED)
    for (auto& record : records_of_rank_end(x))
      outbox_->journal(std::move(record));
  if (!operations().counts(x))
    return;
  watch_->on_report(x, now());
  if (x.phase() == proto::RankReport::BROKEN)
    change([&](auto& epochs) { return epochs.reported(x); });
  else
    carry_out(epochs_->reported(x));
}

void communicator_state::on_progress(const proto::Progress& x) {
  watch_->on_progress(x, now());
}

void communicator_state::on_node_report(const proto::ProgressReport& x) {
  const auto& relay = self->current_sender();
  if (!relay)
    return;
  auto clock = watch_->on_node_report(relay->address(), x, relay->node() == self->node(), now(), outbox_->unix_ns());
  if (!clock)
    return;
  proto::Record record;
  *record.mutable_node_clock() = std::move(*clock);
  outbox_->journal(std::move(record));
}

} // namespace ringmaster
