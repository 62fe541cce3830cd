// Messages between a COMMUNICATOR and a STREAM: plans, releases, epochs and progress.
#include "actors/streams/collective_command.hpp"

#include "runtime/reduction/reduction.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace ringmaster {

collective_command* collective_command::find(stream_state& stream, communicator_id communicator,
                                             sequence_number sequence) {
  for (auto i = stream.queue.rbegin(); i != stream.queue.rend(); ++i)
    if (auto cmd = (*i)->as_collective(); cmd != nullptr && cmd->plan_->comm_id() == communicator.value) {
      if (cmd->sequence() <= sequence.value) // they were queued in this order
        return cmd->sequence() == sequence.value ? cmd : nullptr;
    }
  return nullptr;
}

void collective_command::accept(stream_state& stream, const operation_orders& orders) {
  auto received = std::make_shared<const received_orders>(received_orders{orders, stream.self->current_sender(),
                                                                          stream.memory});
  for (auto& plan : orders.batch->plans())
    accept(stream, received, plan);
  announce(stream);
}

void collective_command::accept(stream_state& stream, const std::shared_ptr<const received_orders>& received,
                                const proto::OperationPlan& plan) {
  communicator_id communicator{plan.comm_id()};
  epoch_number epoch{plan.epoch()};
  if (stream.epochs.is_stale(communicator, epoch))
    return;
  stream.enter_epoch(communicator, epoch);
  if (auto cmd = find(stream, communicator, sequence_number{plan.sequence()})) {
    cmd->take_plan(received, plan);
    stream.head_event([&](command& head) { return &head == cmd ? cmd->begin(stream) : command_outcome::goes_on(); });
    return;
  }
  auto cmd = std::make_unique<collective_command>();
  cmd->take_plan(received, plan);
  if (stream.full())
    cmd->report(stream, proto::RankReport::BROKEN,
                make_error(errc::too_many, fmt::format("stream {} of device 0x{:x} has {} commands queued, its limit",
                                                       stream.id, stream.memory->id(), stream.options.commands_max)));
  else
    stream.enqueue(std::move(cmd));
}

void collective_command::take_plan(std::shared_ptr<const received_orders> received, const proto::OperationPlan& plan) {
  received_ = std::move(received);
  series_ = plan_ = &plan;
  auto me = std::find(plan.device_ids().begin(), plan.device_ids().end(), received_->memory->id().value);
  rank_ = static_cast<uint32_t>(me - plan.device_ids().begin());
  enter(phase::planned);
  stalled_until_ = {};
}

void collective_command::announce(stream_state& stream) {
  collective_command* last = nullptr;
  const bool one_at_a_time = stream.faults.is_set();
  for (auto i = stream.arrived; i < stream.queue.size() && !stream.faults.is_closed(); ++i) {
    auto cmd = stream.queue[i]->as_collective();
    auto before = i == 0 ? nullptr : stream.queue[i - 1]->as_collective();
    if (cmd == nullptr || !cmd->plan_->joint() || cmd->phase_ != phase::planned || (one_at_a_time && i > 0)
        || (before != nullptr && before->plan_->comm_id() != cmd->plan_->comm_id()))
      break;
    if (i == 0 && !cmd->may_arrive(stream))
      return;
    ensure_of(*cmd, i < stream.queue.size() && stream.arrived <= i, "commands arrive in the order of the queue");
    cmd->enter(phase::joint);
    stream.arrived = i + 1;
    last = cmd;
  }
  if (last == nullptr)
    return;
  auto& plan = *last->plan_;
  stream.self->send(caf::actor_cast<communicator_actor>(last->received_->communicator),
                    shared_memory_arrival{communicator_id{plan.comm_id()}, epoch_number{plan.epoch()},
                                          sequence_number{plan.sequence()}, stream.memory->id(), stream.memory});
}

bool collective_command::may_arrive(stream_state& stream) {
  ensure(phase_ == phase::planned && plan_->joint(), "the head arrives that has not come yet");
  if (const auto fault = stream.faults.take_at(0))
    if (stream.suffer(*fault, where(), [&stream] { announce(stream); }))
      return false;
  if (!stream.faults.is_slow())
    return true;
  if (stalled_until_ == decltype(stalled_until_){}) {
    last_move_ = stream.now();
    stalled_until_ = stream.now() + stream.faults.delay();
  }
  if (stream.now() >= stalled_until_)
    return true;
  stream.resume_later(stalled_until_ - stream.now()); // each message of plans asks again
  return false;
}

void collective_command::release_shared_memory(stream_state& stream, const proto::Release& x) {
  const auto go_on = [&stream, x] { release_shared_memory(stream, x); };
  while (!stream.queue.empty()) {
    auto* head = stream.queue.front()->as_collective();
    if (head == nullptr || head->plan_->comm_id() != x.comm_id() || head->phase_ != phase::joint
        || head->plan_->sequence() > x.sequence())
      return;
    if (const auto fault = stream.faults.take_after_start())
      if (stream.suffer(*fault, head->where(), go_on))
        return;
    stream.act_on(command_outcome::ended_without_record());
  }
}

void collective_command::accept(stream_state& stream, const proto::Release& x) {
  communicator_id communicator{x.comm_id()};
  if (stream.epochs.is_stale(communicator, epoch_number{x.epoch()}))
    return;
  if (x.first() != 0)
    return release_shared_memory(stream, x);
  auto cmd = find(stream, communicator, sequence_number{x.sequence()});
  if (cmd != nullptr && cmd->plan_->epoch() == x.epoch())
    stream.act_on(cmd->release(stream));
}

void collective_command::accept(stream_state& stream, const proto::Quiesce& x) {
  communicator_id communicator{x.comm_id()};
  epoch_number epoch{x.epoch()};
  if (!stream.epochs.is_stale(communicator, epoch)) {
    auto cancelled = [&](const collective_command& cmd) {
      return x.forget() || std::count(x.cancel().begin(), x.cancel().end(), cmd.sequence()) > 0;
    };
    // A commit touches this device alone, and its outcome is certain: it goes on.
    for (auto& entry : stream.queue) {
      auto cmd = entry->as_collective();
      if (cmd == nullptr || cmd->plan_->comm_id() != x.comm_id() || cmd->phase_ == phase::committing)
        continue;
      if (cmd->phase_ == phase::walking || cmd->phase_ == phase::finished || cmd->phase_ == phase::joint)
        cmd->report(stream, proto::RankReport::INTERRUPTED);
      cmd->quiesce();
    }
    stream.arrived = 0;
    stream.remove_if([&](const command& entry) {
      auto cmd = entry.as_collective();
      return cmd != nullptr && cmd->plan_->comm_id() == x.comm_id() && cmd->phase_ != phase::committing
             && cancelled(*cmd);
    });
    if (x.forget())
      stream.forget(communicator);
    else
      stream.enter_epoch(communicator, epoch);
  }
  auto asker = caf::actor_cast<communicator_actor>(stream.self->current_sender());
  if (!asker)
    return; // the communicator has died, and this message was sent for it
  proto::Quiesced answer;
  answer.set_comm_id(x.comm_id());
  answer.set_epoch(x.epoch());
  answer.set_device_id(stream.memory->id().value);
  stream.self->send(asker, std::move(answer));
}

void collective_command::accept(stream_state& stream, const proto::ProgressRequest& x) {
  proto::Progress answer;
  auto head = stream.queue.empty() ? nullptr : stream.queue.front().get();
  auto collective = head == nullptr ? nullptr : head->as_collective();
  if (collective != nullptr && collective->plan_->comm_id() == x.comm_id())
    answer = collective->progress(stream);
  else
    answer.set_doing(head == nullptr ? "idle" : fmt::format("busy with a {}", head->kind()));
  answer.set_comm_id(x.comm_id());
  answer.set_number(x.number());
  answer.set_device_id(stream.memory->id().value);
  answer.set_queued(static_cast<uint32_t>(stream.queue.size()));
  // High priority: messages in the communicator's mailbox must not make the answer late.
  stream.self->send<caf::message_priority::high>(caf::actor_cast<communicator_actor>(stream.self->current_sender()),
                                                 std::move(answer));
}

proto::Progress collective_command::progress(const stream_state& stream) const {
  proto::Progress result;
  result.set_epoch(plan_->epoch());
  result.set_sequence(sequence());
  result.set_round(run_.round());
  result.set_rounds(run_.rounds());
  bool stalled = (phase_ == phase::walking && !run_.started())
                 || (phase_ == phase::planned && plan_->joint() && stalled_until_ != decltype(stalled_until_){});
  const bool busy = stalled || !blocks_.ready.empty();
  ensure(!busy || stream.now() >= last_move_, "time does not run backwards");
  result.set_busy(busy);
  result.set_has_come(phase_ == phase::joint);
  if (busy)
    result.set_busy_for_ns(static_cast<uint64_t>((stream.now() - last_move_).count()));
  if (phase_ == phase::finished)
    result.set_doing("finished, waiting for the other ranks");
  else if (phase_ == phase::waiting)
    result.set_doing("waiting for the plan of the next epoch");
  else if (phase_ == phase::joint)
    result.set_doing("has come to it, waits for the others");
  else if (phase_ == phase::broken)
    result.set_doing("broken off");
  else if (phase_ == phase::planned && stalled)
    result.set_doing("was slowed on request, and comes to it later");
  else if (busy)
    result.set_doing(fmt::format("working at {}", round_text()));
  else if (!blocks_.awaited.empty())
    result.set_doing(fmt::format("waiting for rank {}'s block at {}", blocks_.awaited.begin()->first.source,
                                 round_text()));
  else if (!blocks_.arriving.empty())
    result.set_doing(fmt::format("waiting for bytes of rank {} at {}, {} pieces so far",
                                 blocks_.arriving.begin()->first.source, round_text(), slices_ + blocks_.arrived()));
  else
    result.set_doing(fmt::format("waiting for its block to be read at {}", round_text()));
  if (phase_ == phase::walking && !busy)
    for (auto rank : blocks_.waits_for())
      result.add_waits_for(rank);
  received_bytes_.write_to(result);
  return result;
}

uint64_t collective_command::address_of(const block_range& range) const {
  auto start = range.where == buffer::input     ? (buffers_.staged != 0 ? buffers_.staged : input_address())
               : range.where == buffer::scratch ? buffers_.scratch
               : buffers_.shadow != 0           ? buffers_.shadow
                                                : output_address();
  return start + range.offset * buffers_.element_bytes;
}

std::byte* collective_command::bytes_at(const block_range& range) const {
  return received_->memory->at_runtime(address_of(range), bytes_of(range))->data(); // checked by prepare
}

transfer_key collective_command::key_of(size_t step_index, uint32_t source, uint32_t destination) const {
  epoch_number epoch{plan_->epoch()};
  sequence_number sequence{plan_->sequence()};
  return {plan_->comm_id(), epoch, sequence, source, destination, run_.block_of(step_index)};
}

std::string collective_command::round_text() const {
  return fmt::format("round {} of {}", run_.round(), run_.rounds());
}

std::string collective_command::where() const {
  return fmt::format("{} of operation #{} on communicator {}", round_text(), plan_->sequence(), plan_->comm_id());
}

} // namespace ringmaster
