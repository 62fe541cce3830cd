#include "actors/communicators/shared_memory_run.hpp"

#include "runtime/memory/file_shortage.hpp"
#include "runtime/memory/mapped_memory.hpp"
#include "runtime/schedule/request_of.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace ringmaster {

namespace {

/// What a slice touches: at most some ten microseconds' work, and less where that divides the work more evenly.
constexpr uint64_t slice_bytes_max = 512u << 10, slice_bytes_min = 64u << 10;
constexpr uint32_t slices_a_worker = 4;
/// Operations that touch less are moved by the communicator itself: on two cores help costs them as much as it saves,
/// and less where nobody needs to be woken.
constexpr uint64_t help_bytes_min = 2u << 20, lookers_bytes_min = 2 * slice_bytes_min;

} // namespace

void shared_memory_run::on_arrival(const shared_memory_arrival& x) {
  if (x.epoch != epochs_.epoch() || epochs_.state() != epoch_change::phase::active || !epochs_.is_there(x.device))
    return; // of an epoch that is gone
  owner_.note_progress(self_->clock().now());
  ranks_[x.device] = {x.sequence, x.memory ? x.memory : owner_.memory_of(x.device), !x.memory};
  run();
}

bool shared_memory_run::everybody_is_at(sequence_number sequence) const {
  return ranks_.size() == epochs_.ranks().size()
         && std::all_of(ranks_.begin(), ranks_.end(), [=](auto& x) { return x.second.sequence >= sequence; });
}

void shared_memory_run::run() {
  owner_.gather_records(true);
  auto turn_end = self_->clock().now() + options_.turn;
  while ((moving_.sequence != sequence_number{} || begin_moving()) && keep_moving(turn_end)) {
    auto sequence = std::exchange(moving_.sequence, {});
    moving_.work = nullptr;
    auto harmed = damaged();
    if (harmed.empty())
      begin_moving(); // the movers go on while this one's end is noted
    auto now = self_->clock().now();
    owner_.note_progress(now);
    owner_.carry_out(epochs_.data_moved(sequence, harmed.empty() ? caf::error{} : harmed.front().second));
    lose(harmed);
    done_.add(sequence, now);
    if (epochs_.must_defer() || (now >= turn_end && !give_way()))
      break;
  }
  release();
  owner_.gather_records(false);
  if (moving_.sequence == sequence_number{})
    owner_.carry_out(epochs_.transfer_finished());
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
  auto now = self_->clock().now();
  if (!result.empty() || now < looked_at_files_ + look_every)
    return result;
  looked_at_files_ = now;
  for (auto& [device, its] : ranks_)
    if (its.elsewhere)
      if (auto problem = shortage_of(*its.memory))
        result.emplace_back(device, std::move(problem));
  return result;
}

void shared_memory_run::lose(const losses& whom) {
  for (auto& [device, why] : whom)
    owner_.lose(device, why);
}

shared_memory_operation shared_memory_run::work_of(operation& op, uint64_t& bytes) {
  auto& what = op.what();
  auto combine = reducer::of(what.datatype(), what.op(), what.user_op()); // checked when it was called
  shared_memory_operation work{what.kind(), request_of(what, op.world_size, 0), std::move(*combine), {}, {}, {}};
  if (what.op() == gpu_sim::PREMUL_SUM && reduces(what.kind()))
    for (int rank = 0; rank < static_cast<int>(op.world_size); ++rank)
      work.factors.push_back(what.factors(what.factors_size() == 1 ? 0 : rank));
  work.inputs.reserve(op.slots.size());
  work.outputs.reserve(op.slots.size());
  for (auto& x : op.slots) {
    auto& memory = *ranks_.at(x.device).memory;
    auto bytes_at = [&](uint64_t address, uint64_t size) {
      return size == 0 ? nullptr : memory.at(address, size)->data(); // checked, too
    };
    work.inputs.push_back(bytes_at(x.input, x.input_bytes));
    work.outputs.push_back(bytes_at(x.output, x.output_bytes));
    if (x.output_bytes > 0)
      memory.expect_bytes({work.outputs.back(), x.output_bytes});
    bytes += x.input_bytes + x.output_bytes;
  }
  return work;
}

bool shared_memory_run::begin_moving() {
  auto& queue = epochs_.operations().in_flight();
  auto op = std::find_if(queue.begin(), queue.end(), [](auto& x) { return x.state == operation::phase::running; });
  if (epochs_.state() != epoch_change::phase::active || op == queue.end() || !op->joint
      || !everybody_is_at(op->sequence))
    return false;
  if (auto lost = cut(); !lost.empty()) { // by now: nothing has been moved for this one
    lose(lost);
    return false;
  }
  assert(op->slots.size() == ranks_.size()); // nobody is lost while we are active
  uint64_t bytes = 0;
  auto work = work_of(*op, bytes);
  moving_ = {moving_.number + 1, op->sequence, nullptr, 0};
  owner_.carry_out(epochs_.data_moves(*op));
  const bool wakes_nobody = options_.movers != nullptr && options_.movers->has_enough_lookers();
  if (bytes < (wakes_nobody ? lookers_bytes_min : help_bytes_min)) {
    shared_memory_execution execution{std::move(work), help_bytes_min};
    for (uint32_t slice = 0; slice < execution.slices(); ++slice)
      execution.run(slice);
    return true;
  }
  std::vector<std::shared_ptr<mapped_memory>> memories;
  for (auto& x : ranks_)
    memories.push_back(x.second.memory);
  auto workers = options_.movers == nullptr ? 1 : options_.movers->threads() + 1;
  auto slice_bytes = std::clamp(bytes / (slices_a_worker * workers), slice_bytes_min, slice_bytes_max);
  moving_.work = std::make_shared<shared_memory_job>(std::move(work), slice_bytes, std::move(memories), workers,
                                                     communicator_actor{self_}, moving_.number);
  if (options_.movers != nullptr)
    options_.movers->help_with(moving_.work);
  return true;
}

void shared_memory_run::release() {
  constexpr auto patience = std::chrono::milliseconds{1};
  bool goes_on = moving_.sequence != sequence_number{} && !epochs_.must_defer();
  if (done_.last == sequence_number{} || (goes_on && self_->clock().now() - done_.since < patience))
    return;
  owner_.release(done_.first, done_.last);
  done_ = {};
}

bool shared_memory_run::keep_moving(time_point turn_end) {
  if (moving_.work == nullptr)
    return true;
  while (moving_.work->move_slice(0))
    if (self_->clock().now() >= turn_end)
      return give_way();
  return moving_.work->wait();
}

bool shared_memory_run::give_way() {
  self_->send(self_, atom::resume_v, moving_.number);
  return false;
}

void shared_memory_run::moved(uint64_t number) {
  if (number == moving_.number)
    run();
}

void shared_memory_run::note_moving(time_point now) {
  if (moving_.work == nullptr)
    return;
  auto done = moving_.work->slices_moved();
  if (std::exchange(moving_.slices_seen, done) != done)
    owner_.note_progress(now);
}

} // namespace ringmaster
