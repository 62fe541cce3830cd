#include "actors/streams/collective_command.hpp"

#include "actors/calls/answers.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/memory/mapped_memory.hpp"
#include "runtime/rank_order/rank_order.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/schedule/request_of.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace ringmaster {

command_outcome collective_command::begin(stream_state& stream) {
  if (phase_ != phase::planned)
    return command_outcome::goes_on(); // it waits for the plan of the new epoch, or for the other ranks
  if (plan_->joint()) {
    announce(stream);
    return command_outcome::goes_on();
  }
  ensure(walked_.empty() && blocks_.at_rest(), "a walk starts with no block in flight");
  ensure(!buffers_.has_scratch(), "a walk starts without scratch");
  enter(phase::walking);
  started_ns_ = stream.unix_ns();
  received_bytes_.clear();
  if (auto problem = begin_walk(stream, *series_)) {
    break_off(stream, problem);
    return command_outcome::goes_on();
  }
  return advance(stream);
}

caf::error collective_command::begin_walk(stream_state& stream, const proto::OperationPlan& plan) {
  ensure(phase_ == phase::walking && blocks_.at_rest(), "a walk starts with no block in flight");
  plan_ = &plan;
  walk_started_ns_ = stream.unix_ns();
  received_before_ = received_bytes_.total();
  last_move_ = stream.now();
  stalled_until_ = {};
  return prepare();
}

bool collective_command::walk_on(stream_state& stream) {
  ensure(phase_ == phase::walking && blocks_.at_rest(), "a walk ends when no block is in flight");
  ensure(received_bytes_.total() >= received_before_, "bytes that were received are not taken back");
  auto& ended = walked_.emplace_back(walked{plan_, std::exchange(buffers_.shadow, 0), buffers_.output_bytes, {}});
  ended.report.set_sequence(plan_->sequence());
  ended.report.set_started_ns(walk_started_ns_);
  ended.report.set_ended_ns(stream.unix_ns());
  ended.report.set_bytes_received(received_bytes_.total() - received_before_);
  buffers_.free(*received_->memory); // peers have read all that was sent from it
  auto next = static_cast<int>(walked_.size()) - 1;
  ensure(next <= series_->next_size(), "a walk is of the series");
  if (next == series_->next_size())
    return false;
  if (auto problem = begin_walk(stream, series_->next(next)))
    break_off(stream, problem);
  return true;
}

caf::error collective_command::prepare() {
  buffers_.element_bytes = size_of(what().datatype());
  ensure(rank_ < world_size(), "a plan has this rank");
  auto request = request_of(*plan_, rank_);
  buffers_.input_bytes = input_count(what().kind(), request, rank_) * buffers_.element_bytes;
  buffers_.output_bytes = output_count(what().kind(), request, rank_) * buffers_.element_bytes;
  if (auto problem = check_buffers())
    return problem;
  if (auto problem = run_.begin([this] { return planned(); }))
    return problem;
  auto reserve = [&](uint64_t& address, uint64_t size) -> caf::error {
    if (size == 0)
      return caf::none;
    auto range = received_->memory->allocate_scratch(size);
    if (!range)
      return std::move(range.error());
    address = *range;
    return caf::none;
  };
  if (!run_.empty() && wants_shadow(request))
    if (auto problem = reserve(buffers_.shadow, buffers_.output_bytes))
      return problem;
  if (auto problem = reserve(buffers_.scratch, run_.scratch_count() * buffers_.element_bytes))
    return plan_->rank_order() ? no_room(problem, request) : problem;
  buffers_.expected = fused() ? buffers_.output_bytes : 0; // what is fused is small
  return prepare_reduction();
}

bool collective_command::expect_bytes() {
  constexpr uint64_t turn_bytes = 8u << 20; // the system clears them
  ensure(buffers_.expected < buffers_.output_bytes, "memory is allocated up to the end of the output");
  auto& memory = *received_->memory;
  auto begin = buffers_.expected
               - std::min(buffers_.expected, huge_pages::page_bytes); // a page may lie across two turns
  buffers_.expected = std::min(buffers_.expected + turn_bytes, buffers_.output_bytes);
  memory.expect_bytes(*memory.at(output_address() + begin, buffers_.expected - begin));
  if (buffers_.shadow != 0)
    memory.expect_bytes(*memory.at_runtime(buffers_.shadow + begin, buffers_.expected - begin));
  return buffers_.expected < buffers_.output_bytes;
}

caf::expected<schedule> collective_command::planned() const {
  // A factor or a division changes the input even of a single rank; a division at least the bits of a NaN.
  bool changes = reduces(what().kind()) && (what().op() == gpu_sim::PREMUL_SUM || what().op() == gpu_sim::AVG);
  if (world_size() == 1 && !fused() && input_address() == output_address() && !changes)
    return schedule{}; // with one rank and in place the input is the result
  auto request = request_of(*plan_, rank_);
  return plan_->rank_order() ? plan_in_rank_order(what().kind(), what().algorithm(), request)
                             : plan(what().kind(), what().algorithm(), request);
}

/// Contributions that are kept separate take much scratch; an algorithm in rank order needs the least.
caf::error collective_command::no_room(const caf::error& problem, const plan_request& request) const {
  auto text = fmt::format("{}; {} of {} in rank order by {} takes {} bytes of scratch on rank {}", render(problem),
                          name_of(what().kind()), name_of(what().datatype()), what().algorithm(),
                          run_.scratch_count() * buffers_.element_bytes, rank_);
  if (auto* least = first_in_rank_order(what().kind()))
    if (auto planned = plan_in_rank_order(what().kind(), least->name, request))
      text += fmt::format(", by {} {}: take that, fewer elements at a time, or a larger device.memory-bytes",
                          least->name, planned->scratch_count * buffers_.element_bytes);
  return make_error(code_of(problem), text);
}

caf::error collective_command::prepare_reduction() {
  auto reduction = reducer::of(what().datatype(), what().op(), what().user_op());
  if (!reduction)
    return std::move(reduction.error());
  combine_.emplace(std::move(*reduction));
  // In rank order all inputs of an element are added at once, and no partial sum overflows.
  scale_ = reduces(what().kind()) && !plan_->rank_order() ? combine_->scale_before(world_size()) : 1;
  if (!stages())
    return caf::none;
  if (buffers_.input_bytes > 0) {
    auto range = received_->memory->allocate_scratch(buffers_.input_bytes);
    if (!range)
      return std::move(range.error());
    buffers_.staged = *range;
  }
  for (auto& x : inputs()) {
    block_sink sink{received_->memory->at_runtime(buffers_.staged + x.offset, x.bytes)->data()};
    sink.datatype = what().datatype();
    sink.scale = scale_;
    if (has_factors())
      sink.factor = what().factors(what().factors_size() == 1 ? 0 : static_cast<int>(rank_));
    device_window own{received_->memory->id(), x.address, x.bytes, received_->memory};
    blocks_.ready.push_back({nullptr, {}, make_own_route(own, sink), nullptr});
  }
  return caf::none;
}

caf::error collective_command::check_buffers() const {
  auto check = [&](uint64_t address, uint64_t bytes) {
    auto range = received_->memory->at(address, bytes);
    return range ? caf::error{} : std::move(range.error());
  };
  for (auto& side : {inputs(), outputs()})
    for (auto& x : side)
      if (auto problem = check(x.address, x.bytes))
        return problem;
  return caf::none;
}

/// Whether the output would destroy the input. In place, a gathering rank's own block is at its place already, unless
/// ranks were lost and the others have moved up.
bool collective_command::wants_shadow(const plan_request& request) const {
  if (fused())
    return true;
  auto in = input_address(), out = output_address();
  if (!plan_->in_place() || in >= out + buffers_.output_bytes || out >= in + buffers_.input_bytes)
    return false;
  auto at = in_place(what().kind(), request, rank_);
  return replaces_input(what().kind()) || in - out != (at.input - at.output) * buffers_.element_bytes;
}

command_outcome collective_command::advance(stream_state& stream) {
  constexpr uint32_t reads_max = 16; // then the mailbox has its turn
  uint32_t reads = 0;
  while (phase_ == phase::walking || phase_ == phase::committing) {
    if (phase_ == phase::walking && buffers_.expected < buffers_.output_bytes && expect_bytes()) {
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
  if (auto next = run_.ended(index); next && phase_ == phase::walking)
    start_step(stream, *next);
}

void collective_command::start_step(stream_state& stream, size_t index) {
  auto& todo = run_.at(index);
  auto own = [&](const block_range& range) {
    return device_window{received_->memory->id(), address_of(range), bytes_of(range), received_->memory};
  };
  switch (todo.what) {
    case action::send: send(stream, index); break;
    case action::recv:
    case action::recv_reduce: {
      auto key = key_of(index, todo.peer, rank_);
      const bool is_new = blocks_.awaited.emplace(key, index).second;
      ensure(is_new, "a round waits once for a block");
      if (auto early = stream.claim(key))
        take(stream, *early);
      break;
    }
    case action::copy:
      blocks_.ready.push_back(
        {&todo, {}, make_own_route(own(todo.source), sink_of(todo, is_unscaled(todo.source))), nullptr});
      break;
    case action::reduce:
      blocks_.ready.push_back({&todo, {}, make_own_route(own(todo.destination), sink_of(todo, false)), nullptr});
      break;
    case action::fold:
      blocks_.ready.push_back({&todo,
                               {},
                               make_fold({{bytes_at(todo.source), bytes_of(todo.source)},
                                          {bytes_at(todo.destination), bytes_of(todo.destination)},
                                          &*combine_,
                                          todo.finish,
                                          world_size()}),
                               nullptr});
      break;
  }
}

bool collective_command::is_unscaled(const block_range& own) const {
  return scale_ != 1 && !stages() && own.where == buffer::input;
}

/// The inputs of all ranks of a reduction have one size.
bool collective_command::is_unscaled(uint32_t peer, const device_window& its) const {
  if (scale_ == 1 || stages())
    return false;
  auto input = plan_->input_addresses(static_cast<int>(peer));
  return its.address >= input && its.address < input + buffers_.input_bytes;
}

/// Where the bytes of the step go. `unscaled`: they are a rank's input, which has not been scaled.
block_sink collective_command::sink_of(const step& todo, bool unscaled) {
  block_sink result{bytes_at(todo.destination), nullptr, &*combine_};
  result.datatype = what().datatype();
  result.scale = unscaled ? scale_ : 1;
  if (todo.what == action::recv_reduce || todo.what == action::reduce) {
    result.operand = bytes_at(todo.source);
    result.operand_scale = is_unscaled(todo.source) ? scale_ : 1;
  }
  return result;
}

void collective_command::send(stream_state& stream, size_t index) {
  auto& todo = run_.at(index);
  ensure(todo.peer < received_->orders.members->size() && todo.peer != rank_, "a block is sent to another rank");
  auto& peer = (*received_->orders.members)[todo.peer];
  auto key = key_of(index, rank_, todo.peer);
  auto how = stream.offer_block(peer, peer.stream, key, address_of(todo.source), bytes_of(todo.source), false);
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
  if (todo.finish && todo.what != action::fold) { // a fold finishes before it rounds
    if (scale_ != 1)
      combine_->finish_scaled(world_size(), bytes_at(todo.destination), todo.destination.count);
    else
      combine_->finish(world_size(), bytes_at(todo.destination), todo.destination.count);
  }
  if (auto sender = caf::actor_cast<stream_actor>(work.sender)) {
    received_bytes_.add(work.bytes->name, bytes_of(todo.destination));
    if (work.awaited)
      stream.self->send(sender, taken{work.key});
  }
  ended(stream, run_.index_of(todo));
}

command_outcome collective_command::resume(stream_state& stream) {
  if (plan_->joint())
    announce(stream);
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
  if (x.source.bytes != bytes_of(todo.destination))
    return break_off(stream, make_error(errc::size_mismatch,
                                        fmt::format("rank {} sends {} bytes where rank {} expects {}, in {}", todo.peer,
                                                    x.source.bytes, rank_, bytes_of(todo.destination), where())));
  blocks_.awaited.erase(i);
  auto way = stream.route_to(x, sink_of(todo, is_unscaled(todo.peer, x.source)));
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

} // namespace ringmaster
