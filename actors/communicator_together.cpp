// A COMMUNICATOR's operations whose ranks are all in its own process: when every stream has come to one, the data goes
// straight from memory to memory, for all ranks at once. Nobody but its workers takes part, so what has begun is
// completed, whoever is lost meanwhile: it is decided when everybody has arrived.
#include "actors/communicator.hpp"
#include "actors/direct_worker.hpp"

#include "runtime/device_memory.hpp"

#include <algorithm>

namespace ringmaster {

namespace {

constexpr uint64_t slice_bytes = 512u << 10;
/// Less than this is moved at once by the communicator itself: handing it over would take longer.
constexpr uint64_t hand_over_bytes = 256u << 10;

} // namespace

bool communicator_state::can_run_together(const operation& op) const {
  if (!options.share_memory || !is_served_together(op.plan.algorithm()))
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
  while (moving_.sequence == 0 && state == phase::active) {
    auto op = std::find_if(operations_.begin(), operations_.end(),
                           [](auto& x) { return x.state == operation::phase::running; });
    if (op == operations_.end() || !op->together || !everybody_is_at(op->sequence))
      break;
    auto sequence = op->sequence;
    move_data(*op);
    if (moving_.sequence != 0)
      break;
    first = first == 0 ? sequence : first;
    last = sequence;
  }
  if (last != 0)
    release(first, last);
}

void communicator_state::move_data(operation& op) {
  auto combine = reducer::of(op.plan.datatype(), op.plan.op(), op.plan.user_op()); // checked when it was called
  direct_operation work{op.plan.kind(), request_of(op.plan, op.world_size, 0), std::move(*combine), {}, {}, {}};
  if (op.plan.op() == gpu_sim::PREMUL_SUM && reduces(op.plan.kind()))
    for (int rank = 0; rank < static_cast<int>(op.world_size); ++rank)
      work.factors.push_back(op.plan.factors(op.plan.factors_size() == 1 ? 0 : rank));
  std::vector<std::shared_ptr<device_memory>> memories;
  for (auto& x : op.slots) {
    auto& memory = std::find_if(members.begin(), members.end(), [&](auto& y) { return y.id() == x.device; })->memory;
    auto bytes_at = [&](uint64_t address, uint64_t bytes) {
      return bytes == 0 ? nullptr : memory->at(address, bytes)->data(); // checked, too
    };
    work.inputs.push_back(bytes_at(x.input, x.input_bytes));
    work.outputs.push_back(bytes_at(x.output, x.output_bytes));
    memories.push_back(memory);
  }
  op.state = operation::phase::decided;
  tell_written(op);
  auto job = std::make_shared<direct_job>(std::move(work), slice_bytes, std::move(memories));
  auto slices = job->execution.slices();
  if (job->execution.bytes() <= hand_over_bytes) {
    for (uint32_t slice = 0; slice < slices; ++slice)
      job->execution.run(slice);
    return data_is_there(op);
  }
  moving_ = {moving_.number + 1, op.sequence, job, 0};
  for (uint32_t i = 0; i < std::min(options.workers, slices); ++i)
    self->spawn(direct_worker, job, communicator_actor{self}, moving_.number);
}

void communicator_state::moved(uint64_t number) {
  if (number != moving_.number)
    return;
  auto sequence = std::exchange(moving_.sequence, 0);
  moving_.work = nullptr;
  if (auto op = find(sequence))
    data_is_there(*op);
  release(sequence, sequence);
  if (std::exchange(quiesce_after_moving_, false))
    quiesce({});
  else
    run_together();
  finish_ending();
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
  if (moving_.sequence == 0)
    return;
  auto done = moving_.work->done.load();
  if (std::exchange(moving_.slices_seen, done) != done)
    last_progress_ = now;
}

} // namespace ringmaster
