#include "actors/streams/collective_dispatch.hpp"

#include "actors/streams/collective_command.hpp"
#include "runtime/operations/plan_check.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace ringmaster {

using phase = collective_command::phase;

collective_command* collective_dispatch::find(communicator_id communicator, sequence_number sequence) {
  for (auto i = stream_.queue.rbegin(); i != stream_.queue.rend(); ++i)
    if (auto cmd = (*i)->as_collective(); cmd != nullptr && cmd->plan()->comm_id() == communicator.value) {
      if (cmd->sequence() <= sequence.value) // they were queued in this order
        return cmd->sequence() == sequence.value ? cmd : nullptr;
    }
  return nullptr;
}

void collective_dispatch::accept(const operation_orders& orders) {
  const auto received = std::make_shared<const collective_command::received_orders>(
    collective_command::received_orders{orders, stream_.self->current_sender(), stream_.memory});
  for (auto& plan : orders.batch->plans()) {
    const communicator_id communicator{plan.comm_id()};
    const epoch_number epoch{plan.epoch()};
    if (stream_.epochs.is_stale(communicator, epoch))
      continue;
    stream_.enter_epoch(communicator, epoch);
    auto problem = check_plan(plan, stream_.memory->id(), orders.members->size());
    if (auto* cmd = problem ? nullptr : find(communicator, sequence_number{plan.sequence()})) {
      cmd->take_plan(received, plan);
      stream_.head_event([&](command& head) {
        return &head == cmd ? cmd->begin(stream_) : command_outcome::goes_on();
      });
      continue;
    }
    auto cmd = std::make_unique<collective_command>();
    cmd->take_plan(received, plan);
    if (!problem && stream_.full())
      problem = stream_.queue_full();
    if (problem)
      cmd->report(stream_, proto::RankReport::BROKEN, problem);
    else
      stream_.enqueue(std::move(cmd));
  }
  announce();
}

void collective_dispatch::announce() {
  collective_command* last = nullptr;
  const bool one_at_a_time = stream_.faults.is_set();
  auto& queue = stream_.queue;
  for (auto i = arrived_; i < queue.size() && !stream_.faults.is_closed(); ++i) {
    auto cmd = queue[i]->as_collective();
    auto before = i == 0 ? nullptr : queue[i - 1]->as_collective();
    if (cmd == nullptr || !cmd->plan()->joint() || cmd->current_phase() != phase::planned || (one_at_a_time && i > 0)
        || (before != nullptr && before->plan()->comm_id() != cmd->plan()->comm_id()))
      break;
    if (i == 0 && !cmd->may_arrive(stream_))
      return;
    ensure_of(*cmd, i < queue.size() && arrived_ <= i, "commands arrive in the order of the queue");
    cmd->arrive(stream_);
    arrived_ = i + 1;
    last = cmd;
  }
  if (last == nullptr)
    return;
  auto& plan = last->plan();
  last->answer(stream_, shared_memory_arrival{communicator_id{plan->comm_id()}, epoch_number{plan->epoch()},
                                              sequence_number{plan->sequence()}, stream_.memory->id(), stream_.memory});
}

void collective_dispatch::release_arrived(const proto::Release& x) {
  const auto go_on = [this, x] { release_arrived(x); };
  while (!stream_.queue.empty()) {
    auto* head = stream_.queue.front()->as_collective();
    if (head == nullptr || head->plan()->comm_id() != x.comm_id() || head->current_phase() != phase::joint
        || head->plan()->sequence() > x.sequence())
      return;
    if (const auto fault = stream_.faults.take_after_start())
      if (stream_.suffer(*fault, head->where(), go_on))
        return;
    stream_.ended_ops.note(*head->plan(), stream_.memory->id());
    stream_.act_on(command_outcome::ended_without_record());
  }
}

void collective_dispatch::accept(const proto::Release& x) {
  const communicator_id communicator{x.comm_id()};
  if (stream_.epochs.is_stale(communicator, epoch_number{x.epoch()}))
    return;
  if (x.first() != 0)
    return release_arrived(x);
  auto cmd = find(communicator, sequence_number{x.sequence()});
  if (cmd != nullptr && cmd->plan()->epoch() == x.epoch())
    stream_.act_on(cmd->release(stream_));
}

void collective_dispatch::put_in_place(const proto::Quiesce& x) {
  const communicator_id communicator{x.comm_id()};
  for (auto& op : x.decided()) {
    const sequence_number sequence{op.sequence()};
    auto* cmd = find(communicator, sequence);
    if (cmd == nullptr) {
      if (stream_.ended_ops.latest(communicator) >= sequence)
        report_ended(x, op);
    } else if (cmd->current_phase() == phase::joint) {
      stream_.ended_ops.note(*cmd->plan(), stream_.memory->id());
      stream_.remove_if([&](const command& entry) { return &entry == cmd; });
    } else {
      stream_.act_on(cmd->release(stream_));
    }
  }
}

/// Its communicator did not hear of it before it was built again.
void collective_dispatch::report_ended(const proto::Quiesce& x, const proto::DecidedOperation& op) {
  proto::RankReport report;
  report.set_comm_id(x.comm_id());
  report.set_epoch(op.epoch());
  report.set_sequence(op.sequence());
  report.set_device_id(stream_.memory->id().value);
  report.set_phase(proto::RankReport::COMMITTED);
  report.set_stream_id(stream_.id.value);
  report.set_ended_ns(stream_.unix_ns());
  if (auto asker = caf::actor_cast<communicator_actor>(stream_.self->current_sender()))
    stream_.self->send(asker, std::move(report));
}

proto::Recalled collective_dispatch::recall(proto::Recalled of_device) {
  for (auto& known : *of_device.mutable_communicators()) {
    const communicator_id communicator{known.comm_id()};
    const auto latest = std::max(stream_.epochs.latest(communicator), epoch_number{known.members_epoch()});
    if (latest == epoch_number{UINT64_MAX}) {
      known.set_has_ended(true);
      continue;
    }
    // What the former communicator still says is of an epoch that is older now, and so is what streams say.
    const auto next = latest.next();
    stream_.enter_epoch(communicator, next);
    known.set_epoch(next.value);
    stream_.ended_ops.write_to(known);
    if (const auto* mark = stream_.memory->mark_of(communicator, false)) {
      known.set_moving(mark->moving);
      known.set_moved(mark->moved);
    }
    for (auto& entry : stream_.queue) {
      const auto* cmd = entry->as_collective();
      if (cmd == nullptr || cmd->plan()->comm_id() != known.comm_id())
        continue;
      auto& command = *known.add_commands();
      *command.mutable_plan() = cmd->ordered();
      command.set_phase(cmd->recalled_phase());
    }
  }
  return of_device;
}

void collective_dispatch::accept(const proto::Quiesce& x) {
  const communicator_id communicator{x.comm_id()};
  const epoch_number epoch{x.epoch()};
  if (!stream_.epochs.is_stale(communicator, epoch)) {
    for (auto& entry : stream_.queue)
      if (auto cmd = entry->as_collective(); cmd != nullptr && cmd->plan()->comm_id() == x.comm_id())
        cmd->answer_to(stream_.self->current_sender());
    put_in_place(x);
    // A commit touches this device alone, and its outcome is certain: it goes on.
    const auto stops = [&](const collective_command* cmd) {
      return cmd != nullptr && cmd->plan()->comm_id() == x.comm_id() && cmd->current_phase() != phase::committing;
    };
    for (auto& entry : stream_.queue)
      if (auto cmd = entry->as_collective(); stops(cmd))
        cmd->interrupt(stream_);
    arrived_ = 0;
    stream_.remove_if([&](const command& entry) {
      auto cmd = entry.as_collective();
      const bool is_cancelled = stops(cmd) && std::count(x.cancel().begin(), x.cancel().end(), cmd->sequence()) > 0;
      if (is_cancelled)
        stream_.ended_ops.note_cancelled(cmd->ordered());
      return is_cancelled || (x.forget() && stops(cmd));
    });
    if (x.forget())
      stream_.forget(communicator);
    else
      stream_.enter_epoch(communicator, epoch);
  }
  auto asker = caf::actor_cast<communicator_actor>(stream_.self->current_sender());
  if (!asker)
    return; // the communicator has died, and this message was sent for it
  proto::Quiesced answer;
  answer.set_comm_id(x.comm_id());
  answer.set_epoch(x.epoch());
  answer.set_device_id(stream_.memory->id().value);
  stream_.self->send(asker, std::move(answer));
}

void collective_dispatch::accept(const proto::ProgressRequest& x) {
  proto::Progress answer;
  auto head = stream_.queue.empty() ? nullptr : stream_.queue.front().get();
  auto collective = head == nullptr ? nullptr : head->as_collective();
  if (collective != nullptr && collective->plan()->comm_id() == x.comm_id())
    answer = collective->progress(stream_);
  else
    answer.set_doing(head == nullptr ? "idle" : fmt::format("busy with a {}", head->kind()));
  if (const auto work = stream_.work.find(communicator_id{x.comm_id()});
      !answer.has_work() && work != stream_.work.end())
    *answer.mutable_work() = work->second;
  answer.set_comm_id(x.comm_id());
  answer.set_number(x.number());
  answer.set_device_id(stream_.memory->id().value);
  answer.set_queued(static_cast<uint32_t>(stream_.queue.size()));
  // High priority: messages in the communicator's mailbox must not make the answer late.
  stream_.self->send<caf::message_priority::high>(caf::actor_cast<communicator_actor>(stream_.self->current_sender()),
                                                  std::move(answer));
}

} // namespace ringmaster
