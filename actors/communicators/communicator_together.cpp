// A COMMUNICATOR's operations whose ranks are all in its own process: when every stream has come to one, the data goes
// straight from memory to memory, for all ranks at once. Nobody but the communicator and its process's movers takes part,
// so what has begun is completed, whoever is lost meanwhile: it is decided when everybody has arrived.
#include "actors/communicators/communicator.hpp"
#include "actors/communicators/mover_pool.hpp"

#include "runtime/algorithms/registry.hpp"
#include "runtime/memory/device_memory.hpp"

#include <algorithm>
#include <cassert>

namespace ringmaster {

namespace {

/// What a slice touches: at most some ten microseconds' work, and less where that divides the work more evenly.
constexpr uint64_t slice_bytes_max = 512u << 10, slice_bytes_min = 64u << 10;
constexpr uint32_t slices_a_worker = 4;
/// Operations that touch less are moved by the communicator itself: on two cores help costs them as much as it saves.
constexpr uint64_t help_bytes_min = 2u << 20;

} // namespace

bool communicator_state::can_run_together(const operation& op) const {
  if (!options.share_memory || !is_served_together(op.plan.kind(), op.plan.algorithm()))
    return false;
  if (!op.is_in_its_place())
    return false; // the ranks walk the schedule, which takes a shadow
  return everybody_is_here();
}

bool communicator_state::everybody_is_here() const {
  return std::all_of(members.begin(), members.end(), [&](auto& x) { return x.handle.device->node() == self->node(); });
}

void communicator_state::on_arrived(const arrived& x) {
  if (x.epoch != epoch || state != phase::active)
    return; // of an epoch that is gone
  auto i = std::find_if(members.begin(), members.end(), [&](auto& y) { return y.id() == x.device.value; });
  if (i == members.end())
    return;
  last_progress_ = self->clock().now();
  i->arrived = x.sequence;
  i->memory = x.memory;
  run_together();
}

bool communicator_state::everybody_is_at(uint64_t sequence) const {
  return std::all_of(members.begin(), members.end(), [=](auto& x) { return x.arrived >= sequence; });
}

void communicator_state::run_together() {
  uint64_t first = 0, last = 0;
  running_together_ = true;
  auto turn_end = self->clock().now() + options.turn;
  while ((moving_.sequence != 0 || begin_moving()) && keep_moving(turn_end)) {
    auto sequence = std::exchange(moving_.sequence, 0);
    moving_.work = nullptr;
    begin_moving(); // the movers go on while this one's end is noted
    if (auto op = find(sequence))
      data_is_there(*op);
    first = first == 0 ? sequence : first;
    last = sequence;
    if (quiesce_after_moving_ || (last_progress_ >= turn_end && !give_way()))
      break;
  }
  running_together_ = false;
  if (last != 0)
    release(first, last);
  flush_records();
  if (moving_.sequence == 0 && std::exchange(quiesce_after_moving_, false))
    quiesce({});
  finish_ending();
}

bool communicator_state::begin_moving() {
  auto op = std::find_if(operations_.begin(), operations_.end(),
                         [](auto& x) { return x.state == operation::phase::running; });
  if (state != phase::active || op == operations_.end() || !op->together || !everybody_is_at(op->sequence))
    return false;
  assert(op->slots.size() == members.size()); // both are in rank order, and nobody is lost while we are active
  auto combine = reducer::of(op->plan.datatype(), op->plan.op(), op->plan.user_op()); // checked when it was called
  direct_operation work{op->plan.kind(), request_of(op->plan, op->world_size, 0), std::move(*combine), {}, {}, {}};
  if (op->plan.op() == gpu_sim::PREMUL_SUM && reduces(op->plan.kind()))
    for (int rank = 0; rank < static_cast<int>(op->world_size); ++rank)
      work.factors.push_back(op->plan.factors(op->plan.factors_size() == 1 ? 0 : rank));
  uint64_t bytes = 0;
  work.inputs.reserve(members.size());
  work.outputs.reserve(members.size());
  for (size_t rank = 0; rank < members.size(); ++rank) {
    auto& x = op->slots[rank];
    auto bytes_at = [&](uint64_t address, uint64_t size) {
      return size == 0 ? nullptr : members[rank].memory->at(address, size)->data(); // checked, too
    };
    work.inputs.push_back(bytes_at(x.input, x.input_bytes));
    work.outputs.push_back(bytes_at(x.output, x.output_bytes));
    if (x.output_bytes > 0)
      members[rank].memory->expect_bytes({work.outputs.back(), x.output_bytes});
    bytes += x.input_bytes + x.output_bytes;
  }
  op->state = operation::phase::decided;
  tell_written(*op);
  moving_ = {moving_.number + 1, op->sequence, nullptr, 0};
  if (bytes < help_bytes_min) {
    direct_execution execution{std::move(work), help_bytes_min};
    for (uint32_t slice = 0; slice < execution.slices(); ++slice)
      execution.run(slice);
    return true;
  }
  std::vector<std::shared_ptr<device_memory>> memories;
  for (auto& x : members)
    memories.push_back(x.memory);
  auto workers = options.movers == nullptr ? 1 : options.movers->threads() + 1;
  auto slice_bytes = std::clamp(bytes / (slices_a_worker * workers), slice_bytes_min, slice_bytes_max);
  moving_.work = std::make_shared<direct_job>(std::move(work), slice_bytes, std::move(memories), workers,
                                              communicator_actor{self}, moving_.number);
  if (options.movers != nullptr)
    options.movers->help_with(moving_.work);
  return true;
}

bool communicator_state::keep_moving(std::chrono::steady_clock::time_point turn_end) {
  if (moving_.work == nullptr)
    return true;
  while (moving_.work->move_slice(0))
    if (self->clock().now() >= turn_end)
      return give_way();
  return moving_.work->wait();
}

bool communicator_state::give_way() {
  self->send(self, atom::resume_v, moving_.number);
  return false;
}

void communicator_state::moved(uint64_t number) {
  if (number == moving_.number)
    run_together();
}

void communicator_state::data_is_there(operation& op) {
  last_progress_ = self->clock().now();
  end(op.sequence, {});
}

void communicator_state::release(uint64_t first, uint64_t last) {
  proto::Release x;
  x.set_comm_id(options.id.value);
  x.set_epoch(epoch);
  x.set_sequence(last);
  x.set_first(first);
  auto order = caf::make_message(std::move(x));
  for (auto& rank : members)
    if (!lost(rank.id()))
      tell(rank.handle.stream, order);
}

void communicator_state::note_moving(std::chrono::steady_clock::time_point now) {
  if (moving_.work == nullptr)
    return;
  auto done = moving_.work->slices_moved();
  if (std::exchange(moving_.slices_seen, done) != done)
    last_progress_ = now;
}

} // namespace ringmaster
