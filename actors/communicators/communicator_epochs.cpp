// A COMMUNICATOR's epochs: `epoch_change` says who is to be told what, and here they are told.
#include "actors/communicators/communicator.hpp"

#include "runtime/text/quantity_text.hpp"

#include <algorithm>
#include <spdlog/spdlog.h>
#include <utility>

namespace ringmaster {

void communicator_state::change(const std::function<epoch_change::decisions()>& event) {
  flush();
  carry_out(event());
}

void communicator_state::carry_out(epoch_change::decisions decisions) {
  open_ = open_ && !epochs_->changing();
  std::move(decisions.begin(), decisions.end(), std::back_inserter(decisions_));
  if (carrying_out_)
    return; // whoever does goes on with these
  carrying_out_ = true;
  while (!decisions_.empty()) {
    auto next = std::move(decisions_.front());
    decisions_.pop_front();
    std::visit([this](auto& x) { carry_out(x); }, next);
  }
  carrying_out_ = false;
  outbox_->flush_later(); // what has waited for this
  settle();
  if (epochs_->can_leave())
    change([this] { return epochs_->let_leave(); });
  keep_ticking();
}

void communicator_state::announce_members() {
  proto::Members x;
  x.set_comm_id(options.id.value);
  x.set_epoch(epoch().value);
  if (!epochs_->gone())
    for (auto& rank : epochs_->ranks())
      *x.add_devices() = rank.metadata;
  audience devices{self, audience::who::devices};
  for (auto device : ranks())
    devices.add(device, handle_of(device), options.speak_by_relays);
  devices.tell(membership::of(std::move(x), epochs_->gone() ? device_handles{} : handles()));
}

void communicator_state::on_down(const caf::down_msg& x) {
  if (options.coordinator && x.source == options.coordinator.address()) {
    self->quit(x.reason); // nobody can reach it any more, but a timeout under way would keep it
    return;
  }
  auto i = std::find_if(handles_.begin(), handles_.end(),
                        [&](auto& y) { return y.second.device->address() == x.source; });
  if (i != handles_.end())
    lose(i->first, render(x.reason), x.reason == caf::exit_reason::user_shutdown ? "" : "monitor", false);
}

void communicator_state::on_member_lost(const proto::MemberLost& x) {
  lose(device_id{x.device_id()}, x.cause(), x.noticed_by(), false);
}

void communicator_state::lose(device_id device, const std::string& cause, const std::string& noticed_by, bool fence) {
  if (!epochs_->is_there(device) && !epochs_->is_leaving(device))
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

void communicator_state::carry_out(epoch_change::stop_streams& x) {
  proto::Quiesce order;
  order.set_comm_id(options.id.value);
  order.set_epoch(x.epoch.value);
  order.set_forget(x.forget);
  for (auto sequence : x.cancelled)
    order.add_cancel(sequence.value);
  tell(x.devices, order);
}

void communicator_state::on_quiesced(const proto::Quiesced& x) {
  device_id device{x.device_id()};
  epoch_number in{x.epoch()};
  if (in == epoch() && !epochs_->has_stopped(device))
    watch_->note_progress(now());
  carry_out(epochs_->quiesced(device, in));
}

void communicator_state::carry_out(epoch_change::release_operation& x) {
  proto::Release order;
  order.set_comm_id(options.id.value);
  order.set_epoch(epoch().value);
  order.set_sequence(x.sequence.value);
  tell(ranks(), order);
}

void communicator_state::release(sequence_number first, sequence_number last) {
  proto::Release x;
  x.set_comm_id(options.id.value);
  x.set_epoch(epoch().value);
  x.set_sequence(last.value);
  x.set_first(first.value);
  tell(watched(), x);
}

void communicator_state::carry_out(epoch_change::outputs_changed& x) {
  if (!options.coordinator)
    return;
  proto::OutputsWritten written;
  for (auto& from : x.ranges) {
    auto& range = *written.add_ranges();
    range.set_device_id(from.device.value);
    range.set_address(from.address);
    range.set_bytes(from.bytes);
  }
  self->send(options.coordinator, std::move(written));
}

void communicator_state::carry_out(epoch_change::spare_wanted& x) {
  if (!options.coordinator)
    return carry_out(epochs_->no_spare("there is no coordinator"));
  proto::SpareRequest request;
  request.set_comm_id(options.id.value);
  request.set_timeout_ns(static_cast<uint64_t>(options.spare_limit.count()));
  *request.mutable_lost() = x.lost;
  request.set_leaving(x.leaving);
  for (auto& from : x.inputs) {
    auto& range = *request.add_inputs();
    range.set_address(from.address);
    range.set_bytes(from.bytes);
  }
  self->request(options.coordinator, options.spare_limit + options.operation_limit, std::move(request))
    .then([this, lost = id_of(x.lost)](const proto::SpareResponse& y,
                                       const device_handle& handle) { take_spare(y, handle, lost); },
          [this](const caf::error& problem) { change([&] { return epochs_->no_spare(render(problem)); }); });
}

void communicator_state::take_spare(const proto::SpareResponse& x, const device_handle& handle, device_id lost) {
  if (x.success() && !epochs_->ending())
    add_member(x.device(), handle);
  change([&] { return epochs_->spare(x, lost); });
}

void communicator_state::carry_out(epoch_change::epoch_opened& x) {
  proto::Record record;
  auto& opened = *record.mutable_epoch_opened();
  opened.set_comm_id(options.id.value);
  opened.set_epoch(x.epoch.value);
  opened.set_reason(x.reason);
  std::vector<device_id> ids;
  for (auto& rank : epochs_->ranks()) {
    ids.push_back(rank.id());
    opened.add_device_ids(rank.id().value);
  }
  for (auto sequence : x.rerun)
    opened.add_rerun(sequence.value);
  spdlog::info("communicator {}: epoch {} on {}, {} to run again: {}", options.id.value, x.epoch,
               counted(ids.size(), "device"), counted(x.rerun.size(), "operation"), x.reason);
  outbox_->journal(std::move(record));
  for (auto& [device, handle] : handles_)
    if (!epochs_->is_there(device)) {
      traffic_.forget(device);
      self->demonitor(handle.device->address());
    }
  std::erase_if(handles_, [&](auto& y) { return !epochs_->is_there(y.first); });
  std::erase_if(memories_, [&](auto& y) { return !epochs_->is_there(y.first); });
  find_hosts();
  announce_members();
  watch_->note_progress(now());
  shared_memory_->reset();
  for (auto& op : operations().in_flight())
    if (op.state == operation::phase::running)
      run(op);
  flush();
  desk_->set_ranks(x.epoch, std::move(ids));
  open_ = true;
  serve_calls();
}

void communicator_state::carry_out(epoch_change::end_began& x) {
  desk_->fail_all(x.error);
  serve_calls();
}

void communicator_state::carry_out(epoch_change::communicator_aborted& x) {
  proto::Record record;
  record.mutable_communicator_aborted()->set_comm_id(options.id.value);
  record.mutable_communicator_aborted()->set_reason(x.reason);
  outbox_->journal(std::move(record));
  spdlog::info("{}", epochs_->async_error());
}

void communicator_state::carry_out(epoch_change::communicator_gone& x) {
  settle();
  announce_members();
  proto::Record record;
  record.mutable_communicator_destroyed()->set_comm_id(options.id.value);
  record.mutable_communicator_destroyed()->set_reason(x.reason);
  outbox_->journal(std::move(record));
  outbox_->flush_records();
  proto::CommDestroyResponse answer;
  answer.set_success(true);
  for (auto& promise : destroyers_)
    promise.deliver(answer);
  destroyers_.clear();
  end_watching();
  self->quit();
}

} // namespace ringmaster
