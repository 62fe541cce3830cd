#include "actors/streams/collective_command.hpp"

#include "actors/calls/answers.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/memory/huge_pages.hpp"
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
  ensure(walked_.empty() && at_rest(), "a walk begins with nothing on its way");
  ensure(shadow_ == 0 && scratch_ == 0 && staged_ == 0, "a walk begins without scratch");
  enter(phase::walking);
  started_ns_ = stream.unix_ns();
  bytes_received_ = 0;
  received_by_.clear();
  if (auto problem = begin_walk(stream, *series_)) {
    break_off(stream, problem);
    return command_outcome::goes_on();
  }
  return advance(stream);
}

caf::error collective_command::begin_walk(stream_state& stream, const proto::OperationPlan& plan) {
  plan_ = &plan;
  walk_started_ns_ = stream.unix_ns();
  received_before_ = bytes_received_;
  last_move_ = stream.now();
  stalled_until_ = {};
  return prepare();
}

bool collective_command::walk_on(stream_state& stream) {
  ensure(phase_ == phase::walking && at_rest(), "a walk ends when nothing is on its way");
  ensure(bytes_received_ >= received_before_, "bytes that were received are not taken back");
  auto& ended = walked_.emplace_back(walked{plan_, std::exchange(shadow_, 0), output_bytes_, {}});
  ended.report.set_sequence(plan_->sequence());
  ended.report.set_started_ns(walk_started_ns_);
  ended.report.set_ended_ns(stream.unix_ns());
  ended.report.set_bytes_received(bytes_received_ - received_before_);
  free_scratch(); // all that has been sent of it has been read
  auto next = static_cast<int>(walked_.size()) - 1;
  ensure(next <= series_->next_size(), "no more is walked than the series has");
  if (next == series_->next_size())
    return false;
  if (auto problem = begin_walk(stream, series_->next(next)))
    break_off(stream, problem);
  return true;
}

caf::error collective_command::prepare() {
  element_bytes_ = size_of(what().datatype());
  auto request = request_of(*plan_, rank_);
  input_bytes_ = input_count(what().kind(), request, rank_) * element_bytes_;
  output_bytes_ = output_count(what().kind(), request, rank_) * element_bytes_;
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
    if (auto problem = reserve(shadow_, output_bytes_))
      return problem;
  if (auto problem = reserve(scratch_, run_.scratch_count() * element_bytes_))
    return plan_->rank_order() ? no_room(problem, request) : problem;
  expected_ = fused() ? output_bytes_ : 0; // what is fused is small
  return prepare_reduction();
}

bool collective_command::expect_bytes() {
  constexpr uint64_t turn_bytes = 8u << 20; // the system clears them
  ensure(expected_ < output_bytes_, "memory is made for what lacks it");
  auto& memory = *received_->memory;
  auto begin = expected_ - std::min(expected_, huge_pages::page_bytes); // a page may lie across two turns
  expected_ = std::min(expected_ + turn_bytes, output_bytes_);
  memory.expect_bytes(*memory.at(output_address() + begin, expected_ - begin));
  if (shadow_ != 0)
    memory.expect_bytes(*memory.at_runtime(shadow_ + begin, expected_ - begin));
  return expected_ < output_bytes_;
}

caf::expected<schedule> collective_command::planned() const {
  // A factor or a division changes the input of one rank alone, too; the division if only which NaN it is.
  bool changes = reduces(what().kind()) && (what().op() == gpu_sim::PREMUL_SUM || what().op() == gpu_sim::AVG);
  if (world_size() == 1 && !fused() && input_address() == output_address() && !changes)
    return schedule{}; // alone and in place, the input is the result
  auto request = request_of(*plan_, rank_);
  return plan_->rank_order() ? plan_in_rank_order(what().kind(), what().algorithm(), request)
                             : plan(what().kind(), what().algorithm(), request);
}

/// Contributions that travel apart take much scratch; an algorithm in rank order needs least of it.
caf::error collective_command::no_room(const caf::error& problem, const plan_request& request) const {
  auto text = fmt::format("{}; {} of {} in rank order by {} takes {} bytes of scratch on rank {}", render(problem),
                          name_of(what().kind()), name_of(what().datatype()), what().algorithm(),
                          run_.scratch_count() * element_bytes_, rank_);
  if (auto* least = first_in_rank_order(what().kind()))
    if (auto planned = plan_in_rank_order(what().kind(), least->name, request))
      text += fmt::format(", by {} {}: take that, fewer elements at a time, or a larger device.memory-bytes",
                          least->name, planned->scratch_count * element_bytes_);
  return make_error(code_of(problem), text);
}

caf::error collective_command::prepare_reduction() {
  auto reduction = reducer::of(what().datatype(), what().op(), what().user_op());
  if (!reduction)
    return std::move(reduction.error());
  combine_.emplace(std::move(*reduction));
  // In rank order all inputs of an element are added at once, where nothing is too large.
  scale_ = reduces(what().kind()) && !plan_->rank_order() ? combine_->scale_before(world_size()) : 1;
  if (!stages())
    return caf::none;
  if (input_bytes_ > 0) {
    auto range = received_->memory->allocate_scratch(input_bytes_);
    if (!range)
      return std::move(range.error());
    staged_ = *range;
  }
  for (auto& x : inputs()) {
    block_sink sink{received_->memory->at_runtime(staged_ + x.offset, x.bytes)->data()};
    sink.datatype = what().datatype();
    sink.scale = scale_;
    if (has_factors())
      sink.factor = what().factors(what().factors_size() == 1 ? 0 : static_cast<int>(rank_));
    device_window own{received_->memory->id(), x.address, x.bytes, received_->memory};
    ready_.push_back({nullptr, {}, make_own_route(own, sink), nullptr});
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

/// Whether the output would destroy the input. In place, a gathering rank's own block is where it belongs already,
/// unless ranks were lost and the others have closed up.
bool collective_command::wants_shadow(const plan_request& request) const {
  if (fused())
    return true;
  auto in = input_address(), out = output_address();
  if (!plan_->in_place() || in >= out + output_bytes_ || out >= in + input_bytes_)
    return false;
  auto at = in_place(what().kind(), request, rank_);
  return replaces_input(what().kind()) || in - out != (at.input - at.output) * element_bytes_;
}

command_outcome collective_command::advance(stream_state& stream) {
  constexpr uint32_t reads_max = 16; // a turn: then the mailbox has its turn
  uint32_t reads = 0;
  while (phase_ == phase::walking || phase_ == phase::committing) {
    if (phase_ == phase::walking && expected_ < output_bytes_ && expect_bytes()) {
      last_move_ = stream.now();
      stream.resume_later();
      break;
    }
    if (!ready_.empty()) {
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
  ensure(at_rest(), "a round starts when nothing of the one before is on its way");
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
      const bool is_new = awaited_.emplace(key, index).second;
      ensure(is_new, "a round waits once for a block");
      if (auto early = stream.claim(key))
        take(stream, *early);
      break;
    }
    case action::copy:
      ready_.push_back({&todo, {}, make_own_route(own(todo.source), sink_of(todo, is_unscaled(todo.source))), nullptr});
      break;
    case action::reduce:
      ready_.push_back({&todo, {}, make_own_route(own(todo.destination), sink_of(todo, false)), nullptr});
      break;
    case action::fold:
      ready_.push_back({&todo,
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
  return its.address >= input && its.address < input + input_bytes_;
}

/// Where what the step takes goes. `unscaled`: it is a rank's input, which has not been scaled.
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
  auto& peer = (*received_->orders.members)[todo.peer];
  auto key = key_of(index, rank_, todo.peer);
  auto how = stream.offer_block(peer, peer.stream, key, address_of(todo.source), bytes_of(todo.source), false);
  if (how == stream_state::offering::lies) {
    const bool is_new = sends_pending_.emplace(key, index).second;
    ensure(is_new, "a round offers a block once");
    return;
  }
  sent_along_.insert(key);
  ended(stream, index);
}

collective_command::turn collective_command::read_some(stream_state& stream) {
  ensure(!ready_.empty(), "a block is read that is ready");
  auto& work = ready_.front();
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
  ready_.pop_front();
  if (state == route::progress::waiting) {
    auto key = current.key;
    ensure(current.todo != nullptr, "only what comes from another rank is waited for");
    const bool is_new = under_way_.emplace(key, std::move(current)).second;
    ensure(is_new, "a block comes once");
    return turn::goes_on;
  }
  if (current.todo == nullptr && (phase_ == phase::walking || !ready_.empty()))
    return turn::goes_on; // the input, or some of the output, is where it shall be
  if (current.todo == nullptr)
    return turn::committed;
  end_step(stream, current);
  return turn::goes_on;
}

void collective_command::end_step(stream_state& stream, const reading& work) {
  ensure(work.todo != nullptr && phase_ == phase::walking, "a step ends in the walk that it is of");
  auto& todo = *work.todo;
  if (todo.finish && todo.what != action::fold) { // which does so itself, before it rounds
    if (scale_ != 1)
      combine_->finish_scaled(world_size(), bytes_at(todo.destination), todo.destination.count);
    else
      combine_->finish(world_size(), bytes_at(todo.destination), todo.destination.count);
  }
  if (auto sender = caf::actor_cast<stream_actor>(work.sender)) {
    note_received(work.bytes->name, bytes_of(todo.destination));
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
  auto i = awaited_.find(x.key);
  ensure(i != awaited_.end(), "an offer is taken that the round waits for");
  auto& todo = run_.at(i->second);
  if (x.source.bytes != bytes_of(todo.destination))
    return break_off(stream, make_error(errc::size_mismatch,
                                        fmt::format("rank {} sends {} bytes where rank {} expects {}, in {}", todo.peer,
                                                    x.source.bytes, rank_, bytes_of(todo.destination), where())));
  awaited_.erase(i);
  auto way = stream.route_to(x, sink_of(todo, is_unscaled(todo.peer, x.source)));
  if (!way)
    return break_off(stream, way.error());
  ready_.push_back({&todo, x.key, std::move(*way), x.sender, x.awaited});
}

command_outcome collective_command::on_taken(stream_state& stream, const taken& x) {
  const auto i = sends_pending_.find(x.key);
  if (i == sends_pending_.end())
    return command_outcome::goes_on();
  ensure(phase_ == phase::walking, "blocks are offered during the walk");
  const auto index = i->second;
  sends_pending_.erase(i);
  stream.retract(x.key);
  ended(stream, index);
  return advance(stream);
}

command_outcome collective_command::on_refused(stream_state& stream, const refused& x) {
  if (stream.outgoing.count(x.key) != 0 || sent_along_.count(x.key) != 0)
    break_off(stream, x.why());
  return command_outcome::goes_on();
}

command_outcome collective_command::on_chunk(stream_state& stream, const chunk& x) {
  const auto i = under_way_.find(x.key);
  if (i == under_way_.end())
    return command_outcome::goes_on();
  ensure(phase_ == phase::walking, "blocks come during the walk");
  last_move_ = stream.now();
  ++slices_;
  switch (i->second.bytes->on_chunk(stream, x)) {
    case route::progress::done: {
      const auto ended = std::move(i->second);
      under_way_.erase(i);
      end_step(stream, ended);
      return advance(stream);
    }
    case route::progress::broken: break_off(stream, i->second.bytes->error); break;
    default: break;
  }
  return command_outcome::goes_on();
}

} // namespace ringmaster
