#include "actors/communicators/communicator_actions.hpp"

#include "actors/calls/answers.hpp"
#include "actors/communicators/journal_records.hpp"
#include "runtime/text/quantity_text.hpp"

#include <algorithm>
#include <spdlog/spdlog.h>

namespace ringmaster {

namespace {

/// Of a shared-memory operation: the larger of all inputs and all outputs.
uint64_t moved_bytes(const operation& op) {
  uint64_t in = 0, out = 0;
  for (auto& slot : op.slots) {
    in += slot.input_bytes;
    out += slot.output_bytes;
  }
  return std::max(in, out);
}

template <class Target>
void write_range(const operation_queue::memory_range& from, Target& to) {
  to.set_address(from.address);
  to.set_bytes(from.bytes);
}

} // namespace

void epoch_actions::announce_members() const {
  const bool is_gone = on.epochs_->state().phase() == communicator_phase::aborted;
  auto& ranks = on.epochs_->ranks();
  proto::Members x;
  x.set_comm_id(on.options.id.value);
  x.set_epoch(on.epochs_->epoch().value);
  if (!is_gone)
    for (auto& rank : ranks)
      *x.add_devices() = rank.metadata;
  on.members_->devices_of(ids_of(ranks))
    .tell(membership::of(std::move(x), is_gone ? device_handles{} : on.members_->handles_of(ranks)));
}

void epoch_actions::operator()(epoch_change::stop_streams& x) const {
  proto::Quiesce order;
  order.set_comm_id(on.options.id.value);
  order.set_epoch(x.epoch.value);
  order.set_forget(x.forget);
  for (auto sequence : x.cancelled)
    order.add_cancel(sequence.value);
  on.note_relayed(on.members_->streams_of(x.devices).tell(order));
}

void epoch_actions::operator()(epoch_change::release_operation& x) const {
  proto::Release order;
  order.set_comm_id(on.options.id.value);
  order.set_epoch(on.epochs_->epoch().value);
  order.set_sequence(x.sequence.value);
  on.note_relayed(on.members_->streams_of(ids_of(on.epochs_->ranks())).tell(order));
}

void epoch_actions::operator()(epoch_change::outputs_changed& x) const {
  if (!on.options.coordinator)
    return;
  proto::OutputsWritten written;
  for (auto& from : x.ranges) {
    auto& range = *written.add_ranges();
    range.set_device_id(from.device.value);
    write_range(from, range);
  }
  on.self->send(on.options.coordinator, std::move(written));
}

void epoch_actions::operator()(epoch_change::operation_ended& x) const {
  const auto& op = x.what;
  const auto now = on.now();
  on.outbox_->journal(record_of_end(op, on.options.id, on.outbox_->unix_ns()));
  if (op.joint && !op.error)
    on.watch_->note_moved("joint", moved_bytes(op), now);
  on.outcomes_.note_ended(op, on.epochs_->batch().contains(op), now);
  on.limits_.remove_operation(op);
  on.desk_->operation_ended(op.sequence, op.error);
  on.serve_calls();
}

void epoch_actions::operator()(epoch_change::spare_wanted& x) const {
  if (!on.options.coordinator)
    return on.carry_out(on.epochs_->no_spare("there is no coordinator"));
  proto::SpareRequest request;
  request.set_comm_id(on.options.id.value);
  request.set_timeout_ns(static_cast<uint64_t>(on.options.spare_limit.count()));
  *request.mutable_lost() = x.lost;
  request.set_leaving(x.leaving);
  for (auto& from : x.inputs)
    write_range(from, *request.add_inputs());
  auto& state = on; // outlives this object
  state.self
    ->request(state.options.coordinator, state.options.spare_limit + state.options.operation_limit, std::move(request))
    .then([&state,
           lost = id_of(x.lost)](const proto::SpareResponse& y,
                                 const device_handle& handle) { epoch_actions{state}.take_spare(y, handle, lost); },
          [&state](const caf::error& problem) {
            state.change([&](auto& epochs) { return epochs.no_spare(render(problem)); });
          });
}

void epoch_actions::take_spare(const proto::SpareResponse& x, const device_handle& handle, device_id lost) const {
  if (x.success() && !on.epochs_->state().is_ending())
    on.add_member(x.device(), handle);
  on.change([&](auto& epochs) { return epochs.spare(x, lost); });
}

void epoch_actions::operator()(epoch_change::epoch_opened& x) const {
  auto& ranks = on.epochs_->ranks();
  spdlog::info("communicator {}: epoch {} on {}, {} to run again: {}", on.options.id.value, x.epoch,
               counted(ranks.size(), "device"), counted(x.rerun.size(), "operation"), x.reason);
  on.outbox_->journal(record_of_epoch(x, on.options.id, ranks));
  for (auto device : on.members_->set_ranks(ranks))
    on.watch_->forget(device);
  on.planner_->set_hosts(on.members_->hosts());
  announce_members();
  on.watch_->note_progress(on.now());
  on.shared_memory_->reset();
  for (auto& op : on.operations().in_flight())
    if (op.state == operation::phase::running)
      on.run(op);
  on.flush();
  on.desk_->set_ranks(x.epoch, ids_of(ranks));
  on.epoch_is_announced_ = true;
  on.serve_calls();
}

void epoch_actions::operator()(epoch_change::members_left& x) const {
  if (!x.problem) {
    proto::Quiesce forget;
    forget.set_comm_id(on.options.id.value);
    forget.set_epoch(x.epoch.value);
    forget.set_forget(true);
    on.note_relayed(on.members_->streams_of(x.devices).tell(forget));
    proto::Members none;
    none.set_comm_id(on.options.id.value);
    none.set_epoch(x.epoch.value);
    const auto news = caf::make_message(membership::of(std::move(none), {}));
    for (auto device : x.devices)
      on.outbox_->send_shared(on.members_->handle_of(device).device, news);
  }
  auto answer = verdict<proto::LeaveResponse>(x.problem);
  answer.set_epoch(x.epoch.value);
  on.waiters_.answer_leaves(x.devices, static_cast<bool>(x.problem), answer);
}

void epoch_actions::operator()(epoch_change::end_began& x) const {
  on.desk_->fail_all(x.error);
  on.serve_calls();
}

void epoch_actions::operator()(epoch_change::communicator_aborted& x) const {
  proto::Record record;
  record.mutable_communicator_aborted()->set_comm_id(on.options.id.value);
  record.mutable_communicator_aborted()->set_reason(x.reason);
  on.outbox_->journal(std::move(record));
  spdlog::info("{}", on.epochs_->async_error());
}

void epoch_actions::operator()(epoch_change::communicator_gone& x) const {
  on.settle();
  announce_members();
  proto::Record record;
  record.mutable_communicator_destroyed()->set_comm_id(on.options.id.value);
  record.mutable_communicator_destroyed()->set_reason(x.reason);
  on.outbox_->journal(std::move(record));
  on.outbox_->flush_records();
  on.waiters_.answer_destroys();
  on.members_->stop_watching();
  on.self->quit();
}

} // namespace ringmaster
