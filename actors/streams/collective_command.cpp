#include "actors/streams/collective_command.hpp"

#include "messages/errc.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace ringmaster {

void collective_command::take_plan(std::shared_ptr<const received_orders> received, const proto::OperationPlan& plan) {
  received_ = std::move(received);
  const auto me = std::find(plan.device_ids().begin(), plan.device_ids().end(), received_->memory->id().value);
  plan_ = {plan, static_cast<uint32_t>(me - plan.device_ids().begin())};
  series_.set_plan(plan);
  enter(phase::planned);
  stalled_until_ = {};
}

command_outcome collective_command::begin(stream_state& stream) {
  if (phase_ != phase::planned)
    return command_outcome::goes_on(); // it waits for the plan of the new epoch, or for the other ranks
  if (plan_->joint()) {
    stream.collectives.announce();
    return command_outcome::goes_on();
  }
  ensure(series_.walks().empty() && blocks_.at_rest(), "a walk starts with no block in flight");
  ensure(!buffers_.has_scratch(), "a walk starts without scratch");
  enter(phase::walking);
  series_.start(stream.unix_ns());
  if (auto problem = begin_walk(stream)) {
    break_off(stream, problem);
    return command_outcome::goes_on();
  }
  return advance(stream);
}

bool collective_command::may_arrive(stream_state& stream) {
  ensure(phase_ == phase::planned && plan_->joint(), "the head arrives that has not come yet");
  if (const auto fault = stream.faults.take_at(0))
    if (stream.suffer(*fault, where(), [&stream] { stream.collectives.announce(); }))
      return false;
  if (!stream.faults.is_slow())
    return true;
  if (stalled_until_ == decltype(stalled_until_){}) {
    last_move_ = works_since_ = stream.now();
    stalled_until_ = stream.now() + stream.faults.delay();
  }
  if (stream.now() >= stalled_until_)
    return true;
  stream.resume_later(stalled_until_ - stream.now()); // each message of plans asks again
  return false;
}

void collective_command::arrive(stream_state& stream) {
  enter(phase::joint);
  note_work(stream);
  auto& work = stream.work[communicator_id{plan_->comm_id()}];
  work.set_steps(work.steps() + 1);
}

caf::error collective_command::begin_walk(stream_state& stream) {
  ensure(phase_ == phase::walking && blocks_.at_rest(), "a walk starts with no block in flight");
  plan_ = {*series_.next(), plan_.rank()};
  series_.start_walk(stream.unix_ns());
  last_move_ = stream.now();
  stalled_until_ = {};
  if (auto problem = buffers_.lay_out(plan_, received_->memory))
    return problem;
  if (auto problem = run_.begin([plan = plan_] { return plan.planned(); }))
    return problem;
  if (auto problem = buffers_.allocate(run_))
    return problem;
  if (auto problem = reduction_.prepare())
    return problem;
  if (!plan_.stages())
    return caf::none;
  if (auto problem = buffers_.allocate_staged())
    return problem;
  for (auto& x : buffers_.inputs())
    blocks_.ready.push_back({nullptr, {}, reduction_.stage(x), nullptr});
  return caf::none;
}

bool collective_command::walk_on(stream_state& stream) {
  ensure(phase_ == phase::walking && blocks_.at_rest(), "a walk ends when no block is in flight");
  series_.end_walk(plan_, buffers_.take_shadow(), buffers_.output_bytes(), stream.unix_ns());
  buffers_.free(); // peers have read all that was sent from it
  if (series_.next() == nullptr)
    return false;
  if (auto problem = begin_walk(stream))
    break_off(stream, problem);
  return true;
}

command_outcome collective_command::advance(stream_state& stream) {
  if (works_since_ == decltype(works_since_){})
    works_since_ = stream.now();
  auto outcome = move_on(stream);
  if (outcome.has_ended || !owes_move())
    note_work(stream);
  return outcome;
}

bool collective_command::owes_move() const {
  return (phase_ == phase::walking && !run_.started())
         || (phase_ == phase::planned && plan_->joint() && stalled_until_ != decltype(stalled_until_){})
         || !blocks_.ready.empty();
}

void collective_command::note_work(stream_state& stream) {
  if (works_since_ == decltype(works_since_){})
    return;
  stream.work[communicator_id{plan_->comm_id()}] = work_so_far(stream);
  works_since_ = {};
}

proto::DeviceWork collective_command::work_so_far(const stream_state& stream) const {
  const auto known = stream.work.find(communicator_id{plan_->comm_id()});
  auto result = known == stream.work.end() ? proto::DeviceWork{} : known->second;
  if (works_since_ != decltype(works_since_){})
    result.set_own_ns(result.own_ns() + static_cast<uint64_t>((stream.now() - works_since_).count()));
  return result;
}

command_outcome collective_command::move_on(stream_state& stream) {
  constexpr uint32_t reads_max = 16; // then the mailbox has its turn
  uint32_t reads = 0;
  while (phase_ == phase::walking || phase_ == phase::committing) {
    if (phase_ == phase::walking && !buffers_.all_is_expected() && buffers_.expect_more()) {
      last_move_ = stream.now();
      stream.resume_later();
      break;
    }
    if (!blocks_.ready.empty()) {
      const auto state = ++reads > reads_max ? turn::over : read_some(stream);
      if (state == turn::committed)
        return commit_done(stream);
      if (state == turn::goes_on)
        continue;
      stream.resume_later();
      break;
    }
    if (run_.started() && !run_.round_over())
      break; // another rank has to move next
    if (run_.started())
      run_.next_round();
    if (!start_round(stream))
      break;
  }
  return command_outcome::goes_on();
}

bool collective_command::start_round(stream_state& stream) {
  if (const auto fault = stream.faults.take_at(run_.round()))
    if (stream.suffer(*fault, where(), [this, &stream] { stream.act_on(advance(stream)); }))
      return false;
  last_move_ = stream.now();
  if (run_.at_end()) {
    if (walk_on(stream))
      return phase_ == phase::walking;
    enter(phase::finished);
    run_.forget_steps();
    report(stream, proto::RankReport::FINISHED);
    return false;
  }
  if (stream.faults.is_slow() && stalled_until_ == decltype(stalled_until_){}) {
    stalled_until_ = stream.now() + stream.faults.delay();
    stream.resume_later(stream.faults.delay());
    return false;
  }
  stalled_until_ = {};
  ensure(blocks_.at_rest(), "a round starts when no block of the one before is in flight");
  const auto steps = run_.start_round();
  if (!steps) {
    break_off(stream, steps.error());
    return false;
  }
  for (auto index : *steps)
    if (phase_ == phase::walking)
      start_step(stream, index);
  return true;
}

void collective_command::ended(stream_state& stream, size_t index) {
  ensure(phase_ != phase::committing, "a commit has no steps");
  auto& work = stream.work[communicator_id{plan_->comm_id()}];
  work.set_steps(work.steps() + 1);
  if (auto next = run_.ended(index); next && phase_ == phase::walking)
    start_step(stream, *next);
}

void collective_command::start_step(stream_state& stream, size_t index) {
  auto& todo = run_.at(index);
  switch (todo.what) {
    case action::send: send(stream, index); break;
    case action::recv:
    case action::recv_reduce: {
      auto key = plan_.key_of(run_.block_of(index), todo.peer, plan_.rank());
      const bool is_new = blocks_.awaited.emplace(key, index).second;
      ensure(is_new, "a round waits once for a block");
      if (auto early = stream.claim(key))
        take(stream, *early);
      break;
    }
    case action::copy:
    case action::reduce:
    case action::fold: blocks_.ready.push_back({&todo, {}, reduction_.own_route(todo), nullptr}); break;
  }
}

void collective_command::send(stream_state& stream, size_t index) {
  auto& todo = run_.at(index);
  ensure(todo.peer < received_->orders.members->size() && todo.peer != plan_.rank(), "a block is sent to another rank");
  auto& peer = (*received_->orders.members)[todo.peer];
  auto key = plan_.key_of(run_.block_of(index), plan_.rank(), todo.peer);
  auto how = stream.offer_block(peer, peer.stream, key, buffers_.address_of(todo.source),
                                buffers_.bytes_of(todo.source), false);
  if (how == stream_state::offering::lies) {
    const bool is_new = blocks_.offered.emplace(key, index).second;
    ensure(is_new, "a round offers a block once");
    return;
  }
  blocks_.sent_along.insert(key);
  ended(stream, index);
}

collective_command::turn collective_command::read_some(stream_state& stream) {
  ensure(!blocks_.ready.empty(), "a block that is read is ready");
  auto& work = blocks_.ready.front();
  ensure(work.bytes != nullptr, "a block comes by a route");
  auto state = work.bytes->advance(stream);
  last_move_ = stream.now();
  ++slices_;
  if (state == route::progress::more)
    return turn::over;
  if (state == route::progress::broken) {
    break_off(stream, work.bytes->error);
    return turn::goes_on;
  }
  auto current = std::move(work);
  blocks_.ready.pop_front();
  if (state == route::progress::waiting) {
    auto key = current.key;
    ensure(current.todo != nullptr, "only blocks of other ranks are waited for");
    const bool is_new = blocks_.arriving.emplace(key, std::move(current)).second;
    ensure(is_new, "a block comes once");
    return turn::goes_on;
  }
  if (current.todo == nullptr && (phase_ == phase::walking || !blocks_.ready.empty()))
    return turn::goes_on; // the input, or a part of the output, is at its place
  if (current.todo == nullptr)
    return turn::committed;
  end_step(stream, current);
  return turn::goes_on;
}

void collective_command::end_step(stream_state& stream, const block_reading& work) {
  ensure(work.todo != nullptr && phase_ == phase::walking, "a step ends in its own walk");
  auto& todo = *work.todo;
  reduction_.finish(todo);
  if (auto sender = caf::actor_cast<stream_actor>(work.sender)) {
    series_.received().add(work.bytes->name, buffers_.bytes_of(todo.destination));
    auto& done = stream.work[communicator_id{plan_->comm_id()}];
    done.set_bytes(done.bytes() + buffers_.bytes_of(todo.destination));
    if (work.awaited)
      stream.self->send(sender, taken{work.key});
  }
  ended(stream, run_.index_of(todo));
}

command_outcome collective_command::resume(stream_state& stream) {
  if (plan_->joint())
    stream.collectives.announce();
  else if (stream.now() < stalled_until_)
    stream.resume_later(stalled_until_ - stream.now());
  else
    return advance(stream);
  return command_outcome::goes_on();
}

command_outcome collective_command::on_offer(stream_state& stream, const offer& x) {
  take(stream, x);
  return advance(stream);
}

void collective_command::take(stream_state& stream, const offer& x) {
  auto i = blocks_.awaited.find(x.key);
  ensure(i != blocks_.awaited.end(), "the round waits for an offer that is taken");
  auto& todo = run_.at(i->second);
  if (const auto bytes = buffers_.bytes_of(todo.destination); x.source.bytes != bytes)
    return break_off(stream, make_error(errc::size_mismatch,
                                        fmt::format("rank {} sends {} bytes where rank {} expects {}, in {}", todo.peer,
                                                    x.source.bytes, plan_.rank(), bytes, where())));
  blocks_.awaited.erase(i);
  auto way = stream.route_to(x, reduction_.sink_of(todo, x.source));
  if (!way)
    return break_off(stream, way.error());
  blocks_.ready.push_back({&todo, x.key, std::move(*way), x.sender, x.awaited});
}

command_outcome collective_command::on_taken(stream_state& stream, const taken& x) {
  const auto i = blocks_.offered.find(x.key);
  if (i == blocks_.offered.end())
    return command_outcome::goes_on();
  ensure(phase_ == phase::walking, "blocks are offered during the walk");
  const auto index = i->second;
  blocks_.offered.erase(i);
  stream.retract(x.key);
  ended(stream, index);
  return advance(stream);
}

command_outcome collective_command::on_refused(stream_state& stream, const refused& x) {
  if (stream.outgoing.count(x.key) != 0 || blocks_.sent_along.count(x.key) != 0)
    break_off(stream, x.why());
  return command_outcome::goes_on();
}

command_outcome collective_command::on_chunk(stream_state& stream, const chunk& x) {
  const auto i = blocks_.arriving.find(x.key);
  if (i == blocks_.arriving.end())
    return command_outcome::goes_on();
  ensure(phase_ == phase::walking, "blocks come during the walk");
  last_move_ = stream.now();
  ++slices_;
  switch (i->second.bytes->on_chunk(stream, x)) {
    case route::progress::done: {
      const auto ended = std::move(i->second);
      blocks_.arriving.erase(i);
      end_step(stream, ended);
      return advance(stream);
    }
    case route::progress::broken: break_off(stream, i->second.bytes->error); break;
    default: break;
  }
  return command_outcome::goes_on();
}

proto::Progress collective_command::progress(const stream_state& stream) const {
  proto::Progress result;
  result.set_epoch(plan_->epoch());
  result.set_sequence(sequence());
  result.set_round(run_.round());
  result.set_rounds(run_.rounds());
  const bool busy = owes_move();
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
  else if (phase_ == phase::planned && busy)
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
  series_.received().write_to(result);
  *result.mutable_work() = work_so_far(stream);
  return result;
}

std::string collective_command::round_text() const {
  return fmt::format("round {} of {}", run_.round(), run_.rounds());
}

std::string collective_command::where() const {
  return fmt::format("{} of operation #{} on communicator {}", round_text(), plan_->sequence(), plan_->comm_id());
}

} // namespace ringmaster
