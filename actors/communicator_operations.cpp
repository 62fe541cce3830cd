// A COMMUNICATOR's operations: what is asked, who runs it, when its outcome is certain.
#include "actors/communicator.hpp"

#include "runtime/reduction.hpp"
#include "runtime/schedule.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringmaster {

namespace {

/// Whether [address, address + bytes) is within the device's memory.
caf::error check_range(const gpu_sim::DeviceMetadata& device, uint32_t rank, const char* what, uint64_t address,
                       uint64_t bytes) {
  auto min = device.minmemaddr().value();
  auto max = device.maxmemaddr().value();
  if (address >= min && address <= max && bytes <= max - address)
    return caf::none;
  return make_error(errc::out_of_range,
                    fmt::format("rank {}: the {} of {} bytes at 0x{:x} is not within the memory of device 0x{:x}, "
                                "[0x{:x}, 0x{:x})",
                                rank, what, bytes, address, device.deviceid().value(), min, max));
}

/// One address for each rank, no more, no less.
caf::error check_ranks(const google::protobuf::Map<uint32_t, gpu_sim::MemAddr>& addresses, const char* what,
                       size_t world_size) {
  std::vector<uint32_t> missing;
  for (uint32_t rank = 0; rank < world_size; ++rank)
    if (addresses.count(rank) == 0)
      missing.push_back(rank);
  if (!missing.empty())
    return make_error(errc::invalid_argument, fmt::format("no {} address for rank {}: the communicator has ranks 0 to {}",
                                                          what, fmt::join(missing, ", "), world_size - 1));
  if (addresses.size() != world_size)
    return make_error(errc::invalid_argument, fmt::format("{} {} addresses for a communicator of {} ranks",
                                                          addresses.size(), what, world_size));
  return caf::none;
}

} // namespace

caf::expected<communicator_state::operation>
communicator_state::check(const proto::CollectiveRequest& request) const {
  if (auto known = find_algorithm(request.kind(), request.algorithm()); !known)
    return std::move(known.error());
  if (!proto::DataType_IsValid(request.datatype()) || !gpu_sim::ReduceOp_IsValid(request.op()))
    return make_error(errc::invalid_argument, fmt::format("datatype {} or reduction op {} is not one of this version's",
                                                          static_cast<int>(request.datatype()),
                                                          static_cast<int>(request.op())));
  auto element_bytes = size_of(request.datatype());
  if (request.count() > UINT64_MAX / element_bytes)
    return make_error(errc::invalid_argument, fmt::format("count {} of {} is more bytes than an address can count",
                                                          request.count(), name_of(request.datatype())));
  if (auto problem = check_ranks(request.inputs(), "input", members.size()))
    return problem;
  bool in_place = request.outputs().empty();
  if (!in_place)
    if (auto problem = check_ranks(request.outputs(), "output", members.size()))
      return problem;
  operation op;
  op.request = request;
  op.bytes = request.count() * element_bytes;
  for (uint32_t rank = 0; rank < members.size(); ++rank) {
    slot x{members[rank].id(), request.inputs().at(rank).value(), 0};
    x.output = in_place ? x.input : request.outputs().at(rank).value();
    if (auto problem = check_range(members[rank].metadata, rank, "input", x.input, op.bytes))
      return problem;
    if (auto problem = check_range(members[rank].metadata, rank, "output", x.output, op.bytes))
      return problem;
    if (!in_place && x.input < x.output + op.bytes && x.output < x.input + op.bytes)
      return make_error(errc::invalid_argument,
                        fmt::format("rank {}: input at 0x{:x} and output at 0x{:x} of {} bytes overlap; in place means to "
                                    "give no outputs",
                                    rank, x.input, x.output, op.bytes));
    op.slots.push_back(x);
  }
  return op;
}

caf::expected<uint64_t> communicator_state::enqueue(const proto::CollectiveRequest& request) {
  if (state == phase::aborted || state == phase::ending)
    return make_error(errc::aborted, async_error_);
  if (operations_.size() + group_.size() >= options.operations_max)
    return make_error(errc::invalid_argument, fmt::format("communicator {} has {} operations in flight, its limit",
                                                          options.id.value, options.operations_max));
  auto op = check(request);
  if (!op && async_error_.empty())
    return std::move(op.error());
  if (!op) // the caller may not know that ranks have changed
    return make_error(code_of(op.error()),
                      fmt::format("{}; in epoch {} the communicator has {} ranks, see GetCommStatus for their devices: {}",
                                  render(op.error()), epoch, members.size(), async_error_));
  op->sequence = ++sequences_;
  proto::Record record;
  auto& enqueued = *record.mutable_operation_enqueued();
  enqueued.set_sequence(op->sequence);
  *enqueued.mutable_request() = request;
  enqueued.set_bytes(op->bytes);
  journal(std::move(record));
  if (group_open_) {
    group_.push_back(std::move(*op));
    return sequences_;
  }
  if (operations_.empty()) {
    error_.clear();
    last_progress_ = self->clock().now();
  }
  operations_.push_back(std::move(*op));
  if (state == phase::active)
    run(operations_.back());
  keep_ticking();
  return sequences_;
}

void communicator_state::run(operation& op) {
  op.epoch = epoch;
  op.world_size = static_cast<uint32_t>(members.size());
  op.started_ns = unix_ns();
  op.finished.clear();
  ++op.attempts;
  // A member that was lost while the call waited in a group takes no part.
  std::erase_if(op.slots, [&](const slot& x) {
    return std::none_of(members.begin(), members.end(), [&](auto& y) { return y.id() == x.device; });
  });
  proto::OperationPlan plan;
  plan.set_comm_id(options.id.value);
  plan.set_epoch(epoch);
  plan.set_sequence(op.sequence);
  plan.set_kind(op.request.kind());
  plan.set_algorithm(op.request.algorithm());
  plan.set_datatype(op.request.datatype());
  plan.set_op(op.request.op());
  plan.set_count(op.request.count());
  plan.set_in_place(op.request.outputs().empty());
  for (auto& x : op.slots) {
    auto& rank = *plan.add_members();
    rank.set_device_id(x.device);
    rank.set_input_address(x.input);
    rank.set_output_address(x.output);
  }
  device_handles handles;
  for (auto& x : members)
    handles.push_back(x.handle);
  auto order = caf::make_message(std::move(plan), std::move(handles)); // one message for all ranks
  for (auto& x : members)
    tell(x.handle.stream, order);
  proto::Record record;
  auto& started = *record.mutable_operation_started();
  started.set_comm_id(options.id.value);
  started.set_epoch(epoch);
  started.set_sequence(op.sequence);
  started.set_world_size(op.world_size);
  journal(std::move(record));
}

communicator_state::operation* communicator_state::find(uint64_t sequence) {
  auto i = std::find_if(operations_.begin(), operations_.end(),
                        [=](auto& op) { return op.sequence == sequence; });
  return i == operations_.end() ? nullptr : &*i;
}

void communicator_state::on_report(const proto::RankReport& x) {
  if (x.phase() != proto::RankReport::FINISHED) { // each rank's end, one way or the other
    proto::Record record;
    *record.mutable_rank_ended() = x;
    journal(std::move(record));
  }
  auto op = find(x.sequence());
  if (op == nullptr || op->epoch != x.epoch() || x.phase() == proto::RankReport::INTERRUPTED)
    return; // of an epoch that is gone
  last_progress_ = self->clock().now();
  if (x.phase() == proto::RankReport::BROKEN) {
    if (op->state != operation::phase::running)
      return;
    cancel(*op, fmt::format("rank {} (device 0x{:x}): {}", x.rank(), x.device_id(), x.error()));
    quiesce(fmt::format("operation #{} failed", op->sequence));
    return;
  }
  if (x.phase() == proto::RankReport::COMMITTED) {
    op->committed.insert(x.device_id());
  } else {
    op->finished.insert(x.device_id());
    if (op->state == operation::phase::running && op->finished.size() == op->slots.size()) {
      op->state = operation::phase::decided;
      tell_written(*op);
      proto::Release release;
      release.set_comm_id(options.id.value);
      release.set_epoch(epoch);
      release.set_sequence(op->sequence);
      for (auto& rank : members)
        self->send(caf::actor_cast<stream_actor>(rank.handle.stream), release);
    }
  }
  check_decided();
  finish_ending();
}

void communicator_state::check_decided() {
  std::vector<uint64_t> ended;
  for (auto& op : operations_)
    if (op.state == operation::phase::decided
        && std::all_of(members.begin(), members.end(), [&](auto& x) {
             return lost(x.id()) || op.finished.count(x.id()) == 0 || op.committed.count(x.id()) != 0;
           }))
      ended.push_back(op.sequence);
  for (auto sequence : ended)
    end(sequence, {});
}

void communicator_state::tell_written(const operation& op) {
  if (!options.coordinator)
    return;
  proto::OutputsWritten written;
  for (auto& x : op.slots) {
    auto& range = *written.add_ranges();
    range.set_device_id(x.device);
    range.set_address(x.output);
    range.set_bytes(op.bytes);
  }
  self->send(options.coordinator, std::move(written));
}

void communicator_state::end_cancelled() {
  std::vector<std::pair<uint64_t, std::string>> cancelled;
  for (auto& op : operations_)
    if (op.state == operation::phase::cancelled)
      cancelled.emplace_back(op.sequence, op.error);
  for (auto& [sequence, error] : cancelled)
    end(sequence, error);
}

void communicator_state::end(uint64_t sequence, const std::string& error) {
  auto i = std::find_if(operations_.begin(), operations_.end(),
                        [=](auto& op) { return op.sequence == sequence; });
  proto::Record record;
  auto& ended = *record.mutable_operation_ended();
  ended.set_comm_id(options.id.value);
  ended.set_epoch(i->epoch == 0 ? epoch : i->epoch);
  ended.set_sequence(sequence);
  ended.set_status(error.empty() ? gpu_sim::SUCCESS : gpu_sim::FAILED);
  ended.set_error(error);
  ended.set_started_ns(i->started_ns);
  ended.set_ended_ns(unix_ns());
  ended.set_bytes(i->bytes);
  ended.set_attempts(i->attempts);
  ended.set_algorithm(i->request.algorithm());
  ended.set_kind(i->request.kind());
  ended.set_world_size(i->world_size);
  journal(std::move(record));
  if (!error.empty())
    error_ = error;
  if (!error.empty() && i->attempts > 0 && !i->request.outputs().empty())
    tell_written(*i); // in part
  operations_.erase(i);
  settle();
}

} // namespace ringmaster
