#include "actors/communicators/journal_records.hpp"

#include "runtime/invariants/ensure.hpp"

namespace ringmaster {

proto::Record record_of_start(const operation& op, communicator_id communicator) {
  ensure(op.attempts > 0, "an operation that has started is at an attempt");
  proto::Record record;
  auto& started = *record.mutable_operation_started();
  started.set_comm_id(communicator.value);
  started.set_epoch(op.epoch.value);
  started.set_sequence(op.sequence.value);
  started.set_world_size(op.world_size);
  return record;
}

proto::Record record_of_end(const operation& op, communicator_id communicator, uint64_t unix_ns) {
  ensure(op.state != operation::phase::running, "an operation is decided or cancelled before it ends");
  proto::Record record;
  auto& ended = *record.mutable_operation_ended();
  ended.set_comm_id(communicator.value);
  ended.set_epoch(op.epoch.value);
  ended.set_sequence(op.sequence.value);
  ended.set_status(op.error ? gpu_sim::FAILED : gpu_sim::SUCCESS);
  ended.set_error(op.error ? render(op.error) : "");
  ended.set_started_ns(op.started_ns);
  ended.set_ended_ns(unix_ns);
  ended.set_bytes(op.bytes);
  ended.set_attempts(op.attempts);
  ended.set_algorithm(op.what().algorithm());
  ended.set_kind(op.what().kind());
  ended.set_world_size(op.world_size);
  if (op.joint) // the ranks report nothing themselves
    for (auto& slot : op.slots)
      ended.add_device_ids(slot.device.value);
  return record;
}

proto::Record record_of_epoch(const epoch_change::epoch_opened& x, communicator_id communicator,
                              const std::vector<rank_device>& ranks) {
  proto::Record record;
  auto& opened = *record.mutable_epoch_opened();
  opened.set_comm_id(communicator.value);
  opened.set_epoch(x.epoch.value);
  opened.set_reason(x.reason);
  for (auto& rank : ranks)
    opened.add_device_ids(rank.id().value);
  for (auto sequence : x.rerun)
    opened.add_rerun(sequence.value);
  return record;
}

std::vector<proto::Record> records_of_rank_end(const proto::RankReport& x) {
  std::vector<proto::Record> result;
  if (x.walks().empty()) {
    *result.emplace_back().mutable_rank_ended() = x;
    return result;
  }
  auto one = x;
  one.clear_walks();
  for (auto& walk : x.walks()) {
    one.set_sequence(walk.sequence());
    one.set_started_ns(walk.started_ns());
    one.set_ended_ns(walk.ended_ns());
    one.set_bytes_received(walk.bytes_received());
    *result.emplace_back().mutable_rank_ended() = one;
  }
  return result;
}

} // namespace ringmaster
