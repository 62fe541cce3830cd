// The end of a collective command: its results are put in place, it stops for a new epoch, or it fails.
#include "actors/calls/answers.hpp"
#include "actors/streams/collective_command.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace ringmaster {

collective_command::~collective_command() {
  blocks_.arriving.clear(); // before the memory that they are written to is given to others
  buffers_.free(*received_->memory);
  free_walked();
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
  return fmt::format("rank {}, {} of operation #{} on communicator {} in epoch {}, {}; blocks awaited {}, ready {}, "
                     "under way {}, offered {}; {} of {} operations walked",
                     rank_, round_text(), plan_->sequence(), plan_->comm_id(), plan_->epoch(),
                     phases[static_cast<size_t>(phase_)], blocks_.awaited.size(), blocks_.ready.size(),
                     blocks_.arriving.size(), blocks_.offered.size(), walked_.size(), 1 + series_->next_size());
}

void collective_command::free_walked() {
  for (auto& each : walked_)
    if (each.shadow != 0)
      received_->memory->free_scratch(std::exchange(each.shadow, 0));
}

command_outcome collective_command::release(stream_state& stream) {
  if (phase_ != phase::finished)
    return command_outcome::goes_on();
  if (const auto fault = stream.faults.take_at(run_.rounds() + 1))
    if (stream.suffer(*fault, where(), [this, &stream] { stream.act_on(release(stream)); }))
      return command_outcome::goes_on();
  ensure(blocks_.at_rest(), "results are put in place when no block is in flight");
  ensure(walked_.size() == 1 + static_cast<size_t>(series_->next_size()), "the whole series has been walked");
  enter(phase::committing);
  for (auto& each : walked_)
    for (auto& x : packed_pieces(*each.plan, rank_, buffer_side::output, each.shadow != 0 ? each.output_bytes : 0)) {
      device_window own{received_->memory->id(), each.shadow + x.offset, x.bytes, received_->memory};
      block_sink sink{received_->memory->at(x.address, x.bytes)->data()};
      blocks_.ready.push_back({nullptr, {}, make_own_route(own, sink), nullptr});
    }
  return blocks_.ready.empty() ? commit_done(stream) : advance(stream);
}

command_outcome collective_command::commit_done(stream_state& stream) {
  ensure(phase_ == phase::committing && blocks_.ready.empty(), "a commit ends when every result is in place");
  free_walked(); // before the next command starts, which may want as much
  report(stream, proto::RankReport::COMMITTED);
  return command_outcome::ended_without_record();
}

void collective_command::quiesce() {
  enter(phase::waiting);
  blocks_.clear();
  run_.stop();
  buffers_.free(*received_->memory);
  free_walked();
  walked_.clear();
  plan_ = series_;
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
  x.set_rank(rank_);
  x.set_stream_id(stream.id.value);
  x.set_phase(how);
  set_error_in(x, error);
  x.set_started_ns(started_ns_);
  x.set_ended_ns(stream.unix_ns());
  x.set_bytes_received(received_bytes_.total());
  if (how == proto::RankReport::FINISHED)
    received_bytes_.write_to(x);
  if (how == proto::RankReport::COMMITTED && walked_.size() > 1)
    for (auto& each : walked_)
      *x.add_walks() = std::move(each.report);
  stream.self->send(caf::actor_cast<communicator_actor>(received_->communicator), std::move(x));
}

} // namespace ringmaster
