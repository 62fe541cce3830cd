#include "actors/training/training_rank.hpp"

#include "actors/calls/spin.hpp"
#include "actors/scheduling/helping_hand.hpp"
#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

namespace ringmaster::training {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

training_rank_state::~training_rank_state() {
  stop();
}

// -- before the first step --

void training_rank_state::start(rank_settings settings) {
  settings_ = std::move(settings);
  self->set_down_handler([this](const caf::down_msg& x) { down(x); });
  self->monitor(settings_.trainer); // without it the rank has nothing to do
  self->monitor(settings_.coordinator);
  memory_.emplace(self, settings_.coordinator, settings_.device, settings_.memory_bytes, settings_.request_limit);
  memory_->allocate([this](const caf::error& problem) { ready(problem); });
}

// CAF 0.17 answers a request to an actor of another process that has exited only after the request's own limit. So the
// rank monitors the coordinator.
void training_rank_state::down(const caf::down_msg& x) {
  if (x.source != settings_.coordinator.address()) {
    self->demonitor(settings_.coordinator.address());
    return self->quit(x.reason);
  }
  memory_->coordinator_lost(); // the trainer ends the run, too
}

void training_rank_state::ready(const caf::error& problem) {
  if (!problem) {
    ensure(!store_ && !computation_, "memory is allocated once");
    store_.emplace(memory_->bytes(), memory_->address());
    computation_.emplace(*settings_.job, *store_);
  }
  // A code of ours, also for a trainer of this process: a time-out of CAF is errc::timed_out.
  auto ours = problem ? error_from_wire(wire_code(problem), render(problem)) : caf::error{};
  self->send(settings_.trainer,
             rank_ready{settings_.device, settings_.place, std::move(ours), settings_.shared_settings});
}

// -- a step --

void training_rank_state::begin(const step_order& x) {
  stop();
  ensure(computation_.has_value(), "a rank that starts a step was ready");
  order_ = x;
  stopped_ = false;
  events_.clear();
  if (x.forget)
    computation_->kept().forget(x.step);
  const step_world world{x.world_size, x.sides};
  if (auto problem = computation_->begin_step(x.step, world))
    return fail(x.rank, problem);
  shape_ = step_shape(*settings_.job, world);
  rank_.emplace(*this, x.rank, x.world_size, shape_);
  program_ = strategy_for(*settings_.job, x.sides).run(*rank_, shape_);
  run(program_.body());
}

void training_rank_state::run(std::coroutine_handle<> next) {
  ensure(!stopped_ && next, "a program continues while its step is under way");
  resumed_at_ = self->clock().now();
  try {
    next.resume();
  } catch (const std::exception& problem) {
    fail(order_.rank, make_error(errc::aborted, fmt::format("rank {}: the strategy has thrown an exception: {}",
                                                            order_.rank, problem.what())));
  }
  if (stopped_)
    return;
  if (settings_.helps)
    report_and_help();
  else
    report();
}

void training_rank_state::report() {
  report_arrivals();
  if (!program_.body().done())
    return;
  rank_ended result{.attempt = order_.attempt,
                    .rank = order_.rank,
                    .losses = computation_->losses(),
                    .strays_at = computation_->strays_at(),
                    .bytes_peak = store_->bytes_peak(),
                    .bytes_needed = store_->bytes_needed(),
                    .made = {},
                    .events = std::move(events_)};
  for (auto& [what, block] : computation_->kept().made())
    result.made.push_back(what);
  self->send(settings_.trainer, std::move(result));
}

void training_rank_state::report_and_help() {
  const auto has_come = [this] { return !self->mailbox().empty(); };
  helping_hand::help(
    self, [this] { report(); }, has_come);
  if (movers_ == nullptr)
    movers_ = shared_memory_movers::of_this_process();
  movers_ ? movers_->help_until(has_come, polls_for) : spin_until(has_come, polls_for);
}

void training_rank_state::stop() {
  stopped_ = true;
  program_ = {};
  rank_.reset();
  open_.clear();
  arrivals_.clear();
  parts_awaited_.clear();
  loading_ = paused_ = nullptr;
}

uint64_t training_rank_state::abandon(uint64_t attempt) {
  stop();
  return attempt;
}

caf::result<uint64_t> training_rank_state::leave() {
  stop();
  auto promise = self->make_response_promise<uint64_t>();
  memory_->free([this, promise]() mutable {
    promise.deliver(uint64_t{0});
    quit();
  });
  return promise;
}

void training_rank_state::quit() {
  self->demonitor(settings_.trainer.address());
  self->demonitor(settings_.coordinator.address());
  memory_->stop_monitoring();
  self->quit(caf::exit_reason::user_shutdown);
}

byte_block training_rank_state::part(const part_request& x) const {
  auto found = computation_ ? computation_->part(x.step, x.what) : std::nullopt;
  if (!found)
    return {};
  std::byte* to = nullptr;
  auto block = byte_block::uninitialized(found->size(), to);
  std::memcpy(to, found->data(), found->size());
  return block;
}

uint64_t training_rank_state::address_of(const part_sought& x) const {
  // Also after a failure of its own: what it keeps stays in place until the next step starts.
  const auto found = x.attempt != order_.attempt ? nullptr : computation_->kept().find(x.what);
  return found == nullptr ? 0 : found->address;
}

void training_rank_state::fail(uint32_t rank, caf::error why) {
  if (!std::exchange(stopped_, true))
    self->send(settings_.trainer, rank_failed{order_.attempt, rank, std::move(why)});
}

void training_rank_state::fail(const pending& x, const caf::error& why) {
  fail(order_.rank, refused(x, why));
}

// -- its operations --

bool training_rank_state::begin(pending& x) {
  if (stopped_)
    return false;
  ensure(paused_ == nullptr && loading_ == nullptr, "a program does one thing at a time");
  if (needs_others(x))
    return exchange(x);
  report_arrivals(); // what follows can take long
  if (auto parts = computation_->missing(x); !parts.empty()) {
    load(x, parts);
    return false;
  }
  const auto begun = seconds_now();
  const auto held = store_->bytes_used();
  if (auto problem = computation_->compute(x)) {
    fail(x, problem);
    return false;
  }
  const auto ended = seconds_now();
  note(x, begun, ended, held);
  constexpr auto looks_every = std::chrono::milliseconds{500};
  // The step may have been given up; if not, this is news of the rank.
  if (!x.aside && self->clock().now() - resumed_at_ > looks_every) {
    paused_ = &x;
    self->send(settings_.trainer, rank_alive{order_.attempt, order_.rank});
    self->send(self, atom::resume_v, order_.attempt);
    return false;
  }
  x.ended = true;
  return true;
}

void training_rank_state::load(pending& x, const std::vector<kept_part>& missing) {
  ensure(!missing.empty() && parts_awaited_.empty(), "parts are loaded for one operation at a time");
  for (auto& part : missing) {
    auto room = computation_->room_for(part);
    if (!room)
      return fail(x, room.error());
    parts_awaited_[part] = std::move(*room);
  }
  loading_ = &x;
  for (auto& [part, room] : parts_awaited_)
    self->send(settings_.trainer, part_wanted{order_.attempt, order_.rank, part, room->address});
}

void training_rank_state::go_on(uint64_t attempt) {
  if (!stopped_ && attempt == order_.attempt && paused_ != nullptr)
    end(*std::exchange(paused_, nullptr));
}

void training_rank_state::note(const pending& x, double begun, double ended, uint64_t held) {
  const bool is_collective = is_communication(x.what) && x.what != op::send && x.what != op::receive;
  if (order_.profiles)
    events_.push_back({x.what, x.aside, x.rank, is_collective ? x.among.first : x.peer, x.argument.layer,
                       x.argument.samples.first(), begun, ended - begun, held});
}

bool training_rank_state::await(pending& x) {
  return !stopped_ && x.ended;
}

bool training_rank_state::exchange(pending& x) {
  const auto begun = seconds_now();
  const auto held = store_->bytes_used();
  auto data = computation_->prepare(x);
  if (!data) {
    fail(x, data.error());
    return false;
  }
  rank_arrival mine;
  mine.attempt = order_.attempt;
  mine.number = ++numbers_;
  mine.what = x.what;
  mine.aside = x.aside;
  mine.rank = x.rank;
  mine.peer = x.peer;
  mine.among = x.among;
  mine.argument = x.argument;
  mine.asked = x.results[0].has;
  mine.count = data->count;
  mine.input = data->input ? data->input->address + data->offset : 0;
  mine.output = data->output ? data->output->address + data->offset : 0;
  x.ended = x.what == op::send; // no rank waits for it
  ensure(!open_.contains(mine.number), "communications are numbered once");
  open_[mine.number] = {x.ended ? nullptr : &x, std::move(*data), begun, held};
  arrivals_.push_back(std::move(mine));
  if (x.ended)
    note(x, begun, seconds_now(), held);
  return x.ended;
}

void training_rank_state::report_arrivals() {
  if (!arrivals_.empty())
    self->send(settings_.trainer, std::exchange(arrivals_, {}));
}

void training_rank_state::make_room(const room_wanted& x) {
  if (stopped_ || x.attempt != order_.attempt)
    return;
  ensure(open_.contains(x.number), "memory is wanted for a communication under way");
  auto& its = open_.at(x.number);
  ensure(its.of != nullptr && its.data.output == nullptr, "memory is wanted once, for a result");
  auto room = computation_->room_for(x.what);
  if (!room)
    return fail(*its.of, room.error());
  its.data.output = std::move(*room);
  self->send(settings_.trainer, room_found{x.attempt, x.number, order_.rank, its.data.output->address});
}

void training_rank_state::exchanged(const exchange_ended& x) {
  if (stopped_ || x.attempt != order_.attempt)
    return;
  ensure(open_.contains(x.number), "a communication that has finished was under way");
  auto its = std::move(open_.extract(x.number).mapped());
  auto* of = its.of;
  if (of == nullptr)
    return;
  of->results[0] = x.result;
  if (of->what == op::receive)
    of->argument = x.result;
  computation_->complete(*of, std::move(its.data.output));
  // A rank that computes meanwhile handles this late; the trainer's time can only be used within one process.
  const bool is_ours = self->current_sender() && self->current_sender()->node() == self->node();
  note(*of, its.begun, is_ours && of->aside ? x.ended : seconds_now(), its.held);
  its.data = {}; // the program continues, and may need the memory
  end(*of);
}

void training_rank_state::restored(const part_found& x) {
  if (stopped_ || x.attempt != order_.attempt || loading_ == nullptr)
    return;
  auto its = parts_awaited_.extract(x.what);
  if (its.empty())
    return;
  auto& room = its.mapped();
  if (const auto data = x.data.bytes(); !data.empty())
    std::memcpy(room->data, data.data(), std::min<size_t>(data.size(), room->bytes));
  computation_->kept().restore(x.what, std::move(room));
  if (!parts_awaited_.empty())
    return;
  auto& load = *std::exchange(loading_, nullptr);
  if (auto problem = computation_->compute(load))
    return fail(load, problem);
  end(load);
}

void training_rank_state::end(pending& x) {
  ensure(!x.ended, "an operation ends once");
  x.ended = true;
  if (x.waiter)
    run(x.waiter);
}

rank_actor::behavior_type training_rank(rank_actor::stateful_pointer<training_rank_state> self,
                                        rank_settings settings) {
  auto& state = self->state;
  state.self = self;
  state.start(std::move(settings));
  return {[&state](const step_order& x) { state.begin(x); },
          [&state](const exchange_ended& x) { state.exchanged(x); },
          [&state](const room_wanted& x) { state.make_room(x); },
          [&state](const part_found& x) { state.restored(x); },
          [&state](const step_abandoned& x) { return state.abandon(x.attempt); },
          [&state](const run_over&) { return state.leave(); },
          [&state](const part_sought& x) { return state.address_of(x); },
          [&state](const part_request& x) { return state.part(x); },
          [&state](atom::resume, uint64_t attempt) { state.go_on(attempt); }};
}

} // namespace ringmaster::training
