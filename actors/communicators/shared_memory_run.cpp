#include "actors/communicators/shared_memory_run.hpp"

#include "runtime/memory/mapped_memory.hpp"
#include "runtime/memory/memory_directory.hpp"
#include "runtime/schedule/request_of.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ringmaster {

namespace {

/// What a slice touches: some ten microseconds of work at most, and less where that divides the work more evenly.
constexpr uint64_t slice_bytes_max = 512u << 10, slice_bytes_min = 64u << 10;
constexpr uint32_t slices_a_worker = 4;
/// Operations that touch less are moved by the communicator alone: on two cores help costs them as much as it saves.
/// The second limit is for helpers that need not be woken.
constexpr uint64_t help_bytes_min = 2u << 20, awake_help_bytes_min = 2 * slice_bytes_min;

} // namespace

void shared_memory_run::reset() {
  ensure(moving_.sequence == sequence_number{} && ended_.sequence == sequence_number{},
         "no epoch opens while data moves");
  forget_mark();
  ranks_.clear();
}

void shared_memory_run::mark_moving(sequence_number sequence) {
  if (mark_ == nullptr) {
    const auto other = std::find_if(ranks_.begin(), ranks_.end(), [](auto& x) { return x.second.is_elsewhere; });
    if (other == ranks_.end())
      return; // the ranks end with this process
    marked_ = other->second.memory;
    mark_ = marked_->mark_of(id_, true);
  }
  if (mark_ != nullptr)
    mark_->moving.store(sequence.value, std::memory_order_release);
}

void shared_memory_run::mark_moved(sequence_number sequence) {
  if (mark_ != nullptr)
    mark_->moved.store(sequence.value, std::memory_order_release);
}

void shared_memory_run::forget_mark() {
  mark_ = nullptr;
  if (const auto marked = std::exchange(marked_, nullptr))
    marked->free_mark(id_);
}

bool shared_memory_run::on_arrival(device_id device, epoch_number epoch, sequence_number sequence,
                                   std::shared_ptr<mapped_memory> memory, bool is_elsewhere) {
  if (epoch != epochs_.state().epoch() || !epochs_.state().is_active() || !epochs_.members().contains(device)
      || memory == nullptr)
    return false;
  ranks_[device] = {sequence, std::move(memory), is_elsewhere};
  ensure(ranks_.size() <= epochs_.members().ranks().size(), "only members come to operations");
  return true;
}

bool shared_memory_run::all_have_come_to(sequence_number sequence) const {
  return ranks_.size() == epochs_.members().ranks().size()
         && std::all_of(ranks_.begin(), ranks_.end(), [=](auto& x) { return x.second.sequence >= sequence; });
}

shared_memory_run::step shared_memory_run::next(time_point until) {
  step out;
  if (ended_.sequence != sequence_number{})
    return note_end(std::move(out));
  const bool is_moving = moving_.sequence != sequence_number{};
  if (const auto ended_at = std::exchange(ended_at_, std::nullopt))
    if ((epochs_.state().stop_is_deferred() && !is_moving) || (*ended_at >= until && !give_way()))
      return out;
  if (!is_moving)
    start_next(out);
  if (moving_.sequence == sequence_number{})
    return out;
  if (!out.decisions.empty()) { // to be carried out before any byte is written
    out.goes_on = true;
    return out;
  }
  if (!keep_moving(until))
    return out;
  ended_ = {std::exchange(moving_.sequence, {}), damaged()};
  if (ended_.harmed.empty())
    mark_moved(ended_.sequence);
  moving_.job = nullptr;
  if (ended_.harmed.empty())
    start_next(out); // the movers go on while the end of this one is noted
  if (!out.decisions.empty() || !out.harmed.empty()) {
    out.goes_on = true;
    return out;
  }
  return note_end(std::move(out));
}

shared_memory_run::step shared_memory_run::note_end(step out) {
  const auto ended = std::exchange(ended_, {});
  const auto now = self_->clock().now();
  out.progress_at = ended_at_ = now;
  out.decisions = epochs_.data_moved(ended.sequence, ended.harmed.empty() ? caf::error{} : ended.harmed.front().second);
  ensure(!out.decisions.empty(), "an operation whose data is in place ends");
  out.harmed = ended.harmed;
  out.goes_on = true;
  done_.add(ended.sequence, now);
  return out;
}

shared_memory_run::losses shared_memory_run::damaged() const {
  losses result;
  for (auto& [device, its] : ranks_)
    if (auto problem = its.memory->damage())
      result.emplace_back(device, std::move(problem));
  return result;
}

shared_memory_run::losses shared_memory_run::cut() {
  constexpr auto look_every = std::chrono::milliseconds{1}; // a look at a file takes a microsecond
  auto result = damaged();
  const auto now = self_->clock().now();
  ensure(now >= looked_at_files_, "time does not run backwards");
  if (!result.empty() || now < looked_at_files_ + look_every)
    return result;
  looked_at_files_ = now;
  for (auto& [device, its] : ranks_)
    if (its.is_elsewhere)
      if (auto problem = shortage_of(*its.memory))
        result.emplace_back(device, std::move(problem));
  return result;
}

shared_memory_operation shared_memory_run::work_of(operation& op, uint64_t& bytes) {
  auto& what = op.what();
  auto combine = reducer::of(what.datatype(), what.op(), what.user_op());
  ensure(static_cast<bool>(combine), "the reduction was checked at the call");
  shared_memory_operation work{what.kind(), request_of(what, op.world_size, 0), std::move(*combine), {}, {}, {}};
  if (what.op() == gpu_sim::PREMUL_SUM && reduces(what.kind()))
    for (int rank = 0; rank < static_cast<int>(op.world_size); ++rank)
      work.factors.push_back(what.factors(what.factors_size() == 1 ? 0 : rank));
  work.inputs.reserve(op.slots.size());
  work.outputs.reserve(op.slots.size());
  for (auto& x : op.slots) {
    auto& memory = *ranks_.at(x.device).memory;
    const auto bytes_at = [&](uint64_t address, uint64_t size) {
      return size == 0 ? nullptr : memory.at(address, size)->data(); // checked at the call
    };
    work.inputs.push_back(bytes_at(x.input, x.input_bytes));
    work.outputs.push_back(bytes_at(x.output, x.output_bytes));
    if (x.output_bytes > 0)
      memory.expect_bytes({work.outputs.back(), x.output_bytes});
    bytes += x.input_bytes + x.output_bytes;
  }
  return work;
}

void shared_memory_run::start_next(step& out) {
  ensure(moving_.sequence == sequence_number{} && moving_.job == nullptr && !moving_.small,
         "the data of one operation moves at a time");
  auto& queue = epochs_.operations().in_flight();
  const auto op = std::find_if(queue.begin(), queue.end(),
                               [](auto& x) { return x.state == operation::phase::running; });
  if (!epochs_.state().is_active() || op == queue.end() || !op->joint || !all_have_come_to(op->sequence))
    return;
  out.harmed = cut(); // nothing has been moved for this one
  if (!out.harmed.empty())
    return;
  ensure(op->slots.size() == ranks_.size(), "in an active epoch no member is lost");
  uint64_t bytes = 0;
  auto work = work_of(*op, bytes);
  moving_ = {moving_.number + 1, op->sequence, std::nullopt, nullptr, 0};
  mark_moving(op->sequence);
  out.decisions = epochs_.data_moves(*op);
  const bool helpers_are_awake = movers_ != nullptr && movers_->has_enough_pollers();
  if (bytes < (helpers_are_awake ? awake_help_bytes_min : help_bytes_min)) {
    moving_.small = std::move(work);
    return;
  }
  std::vector<std::shared_ptr<mapped_memory>> memories;
  for (auto& x : ranks_)
    memories.push_back(x.second.memory);
  const auto workers = movers_ == nullptr ? 1 : movers_->threads() + 1;
  const auto slice_bytes = std::clamp(bytes / (slices_a_worker * workers), slice_bytes_min, slice_bytes_max);
  moving_.job = std::make_shared<shared_memory_job>(std::move(work), slice_bytes, std::move(memories), workers,
                                                    communicator_actor{self_}, moving_.number);
  if (movers_ != nullptr)
    movers_->help_with(moving_.job);
}

bool shared_memory_run::keep_moving(time_point until) {
  if (moving_.small) {
    const shared_memory_execution execution{std::move(*moving_.small), help_bytes_min};
    for (uint32_t slice = 0; slice < execution.slices(); ++slice)
      execution.run(slice);
    moving_.small.reset();
    return true;
  }
  ensure(moving_.job != nullptr, "data that moves has a job");
  while (moving_.job->move_slice(0))
    if (self_->clock().now() >= until)
      return give_way();
  return moving_.job->wait();
}

bool shared_memory_run::give_way() {
  self_->send(self_, atom::resume_v, moving_.number);
  return false;
}

shared_memory_run::turn_end shared_memory_run::end_turn() {
  constexpr auto patience = std::chrono::milliseconds{1};
  ensure(ended_.sequence == sequence_number{}, "a turn ends when the end of every operation is noted");
  turn_end result{std::nullopt, moving_.sequence == sequence_number{}};
  if (done_.last == sequence_number{})
    return result;
  const bool may_wait = !result.is_idle && !epochs_.state().stop_is_deferred();
  if (may_wait && self_->clock().now() - done_.since < patience)
    return result;
  result.released = {done_.first, done_.last};
  done_ = {};
  return result;
}

bool shared_memory_run::has_moved() {
  if (moving_.job == nullptr)
    return false;
  const auto moved = moving_.job->slices_moved();
  ensure(moved >= moving_.slices_seen, "slices that were moved stay moved");
  return std::exchange(moving_.slices_seen, moved) != moved;
}

} // namespace ringmaster
