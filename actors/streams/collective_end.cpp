// The end of a collective command: its results are put in place, it stops for a new epoch, or it fails.
#include "actors/calls/answers.hpp"
#include "actors/streams/collective_command.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace ringmaster {

collective_command::~collective_command() {
  blocks_.arriving.clear(); // before the memory that they are written to is given to others
  buffers_.free();
  series_.free(*received_->memory);
}

void collective_command::enter(phase next) {
  const bool is_legal = next == phase::walking      ? phase_ == phase::planned
                        : next == phase::finished   ? phase_ == phase::walking
                        : next == phase::committing ? phase_ == phase::finished
                        : next == phase::joint      ? phase_ == phase::planned
                                                    : true;
  ensure(is_legal, "a phase follows one that it may follow");
  phase_ = next;
}

std::string collective_command::state_text() const {
  constexpr std::string_view phases[] = {"waiting", "planned", "walking", "finished", "broken", "committing", "joint"};
  return fmt::format(
    "rank {}, {} of operation #{} on communicator {} in epoch {}, {}; blocks awaited {}, ready {}, under "
    "way {}, offered {}; {} of {} operations walked",
    plan_.rank(), round_text(), plan_->sequence(), plan_->comm_id(), plan_->epoch(),
    phases[static_cast<size_t>(phase_)], blocks_.awaited.size(), blocks_.ready.size(), blocks_.arriving.size(),
    blocks_.offered.size(), series_.walks().size(), series_.size());
}

command_outcome collective_command::release(stream_state& stream) {
  if (phase_ != phase::finished)
    return command_outcome::goes_on();
  if (const auto fault = stream.faults.take_at(run_.rounds() + 1))
    if (stream.suffer(*fault, where(), [this, &stream] { stream.act_on(release(stream)); }))
      return command_outcome::goes_on();
  ensure(blocks_.at_rest(), "results are put in place when no block is in flight");
  ensure(series_.next() == nullptr, "the whole series has been walked");
  enter(phase::committing);
  for (auto& each : series_.walks()) {
    const auto written = each.shadow != 0 ? each.output_bytes : 0; // else it is at its place
    for (auto& x : packed_pieces(*each.plan, plan_.rank(), buffer_side::output, written)) {
      block_sink sink{received_->memory->at(x.address, x.bytes)->data()};
      blocks_.ready.push_back(
        {nullptr, {}, make_own_route(buffers_.window_at(each.shadow + x.offset, x.bytes), sink), nullptr});
    }
  }
  return blocks_.ready.empty() ? commit_done(stream) : advance(stream);
}

command_outcome collective_command::commit_done(stream_state& stream) {
  ensure(phase_ == phase::committing && blocks_.ready.empty(), "a commit ends when every result is in place");
  series_.free(*received_->memory); // before the next command starts, which may want as much
  for (auto& each : series_.walks())
    stream.ended_ops.note(*each.plan, received_->memory->id());
  report(stream, proto::RankReport::COMMITTED);
  return command_outcome::ended_without_record();
}

proto::RecalledCommunicator::Phase collective_command::recalled_phase() const {
  using recalled = proto::RecalledCommunicator;
  return phase_ == phase::finished     ? recalled::FINISHED
         : phase_ == phase::committing ? recalled::COMMITTING
         : phase_ == phase::joint      ? recalled::ARRIVED
                                       : recalled::WAITING;
}

void collective_command::answer_to(const caf::strong_actor_ptr& communicator) {
  if (communicator == nullptr || received_->communicator == communicator)
    return;
  auto again = *received_; // other commands share the message
  again.communicator = communicator;
  received_ = std::make_shared<const received_orders>(std::move(again));
}

void collective_command::interrupt(stream_state& stream) {
  if (phase_ == phase::walking || phase_ == phase::finished || phase_ == phase::joint)
    report(stream, proto::RankReport::INTERRUPTED);
  quiesce();
}

void collective_command::quiesce() {
  enter(phase::waiting);
  works_since_ = {};
  blocks_.clear();
  run_.stop();
  buffers_.free();
  series_.free(*received_->memory);
  series_.start_again();
  plan_ = {series_.first(), plan_.rank()};
  ensure(!buffers_.has_scratch(), "a command that has stopped has no scratch");
}

void collective_command::break_off(stream_state& stream, caf::error reason) {
  quiesce();
  enter(phase::broken); // until the communicator has heard of it and opens a new epoch
  report(stream, proto::RankReport::BROKEN, reason);
}

void collective_command::report(stream_state& stream, proto::RankReport::Phase how, const caf::error& error) {
  if (stream.ends_by_damage())
    return; // the result is not there
  proto::RankReport x;
  x.set_comm_id(plan_->comm_id());
  x.set_epoch(plan_->epoch());
  x.set_sequence(sequence());
  x.set_device_id(received_->memory->id().value);
  x.set_rank(plan_.rank());
  x.set_stream_id(stream.id.value);
  x.set_phase(how);
  set_error_in(x, error);
  x.set_ended_ns(stream.unix_ns());
  series_.write_to(x);
  answer(stream, std::move(x));
}

} // namespace ringmaster
