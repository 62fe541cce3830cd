#pragma once

#include "messages/journal.pb.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ringmaster::test {

/// The first instant that the records of tests name: 2026-01-01 00:00:00 UTC.
constexpr uint64_t new_year_ns = 1'767'225'600'000'000'000;

inline proto::Record record_at(uint64_t ms) {
  proto::Record record;
  record.set_time_ns(new_year_ns + ms * 1'000'000);
  return record;
}

inline proto::Record device_died(uint64_t device, std::string cause, uint64_t ms = 0) {
  auto record = record_at(ms);
  auto* x = record.mutable_device_died();
  x->set_device_id(device);
  x->set_cause(std::move(cause));
  x->set_noticed_by("monitor");
  return record;
}

inline proto::Record operation_enqueued(uint64_t communicator, uint64_t sequence, uint64_t ms = 0) {
  auto record = record_at(ms);
  auto* x = record.mutable_operation_enqueued();
  x->set_sequence(sequence);
  x->set_bytes(4096);
  x->mutable_request()->set_comm_id(communicator);
  x->mutable_request()->mutable_collective()->set_algorithm("ring");
  x->mutable_request()->mutable_collective()->set_count(512);
  for (uint32_t rank = 0; rank < 4; ++rank)
    x->mutable_request()->add_inputs(0x1000 * (rank + 1));
  return record;
}

inline proto::Record operation_started(uint64_t communicator, uint64_t sequence, uint64_t epoch = 1, uint64_t ms = 0) {
  auto record = record_at(ms);
  auto* x = record.mutable_operation_started();
  x->set_comm_id(communicator);
  x->set_sequence(sequence);
  x->set_epoch(epoch);
  x->set_world_size(4);
  return record;
}

inline proto::Record rank_ended(uint64_t communicator, uint64_t sequence, uint32_t rank, uint64_t device,
                                uint64_t ms = 0) {
  auto record = record_at(ms);
  auto* x = record.mutable_rank_ended();
  x->set_comm_id(communicator);
  x->set_epoch(1);
  x->set_sequence(sequence);
  x->set_rank(rank);
  x->set_device_id(device);
  x->set_phase(proto::RankReport::COMMITTED);
  x->set_started_ns(record.time_ns() - 1'250'000);
  x->set_ended_ns(record.time_ns());
  x->set_bytes_received(6144);
  return record;
}

inline proto::Record operation_ended(uint64_t communicator, uint64_t sequence, gpu_sim::Status status,
                                     uint64_t ms = 0) {
  auto record = record_at(ms);
  auto* x = record.mutable_operation_ended();
  x->set_comm_id(communicator);
  x->set_epoch(1);
  x->set_sequence(sequence);
  x->set_status(status);
  x->set_error(status == gpu_sim::FAILED ? "device 0x3 died" : "");
  x->set_started_ns(record.time_ns() - 2'000'000);
  x->set_ended_ns(record.time_ns());
  x->set_bytes(4096);
  x->set_attempts(1);
  x->set_algorithm("ring");
  x->set_world_size(4);
  return record;
}

inline proto::Record command_ended(uint64_t device, uint64_t stream, std::string kind, std::string error = "",
                                   uint64_t ms = 0) {
  auto record = record_at(ms);
  auto* x = record.mutable_command_ended();
  x->set_device_id(device);
  x->set_stream_id(stream);
  x->set_kind(std::move(kind));
  x->set_bytes(1 << 20);
  x->set_started_ns(record.time_ns() - 500'000);
  x->set_ended_ns(record.time_ns());
  x->set_error(std::move(error));
  return record;
}

inline proto::Record calls_refused(uint64_t communicator, std::string reason, uint64_t ms = 0) {
  auto record = record_at(ms);
  record.mutable_calls_refused()->set_comm_id(communicator);
  record.mutable_calls_refused()->set_reason(std::move(reason));
  return record;
}

inline proto::Record communicator_aborted(uint64_t communicator, std::string reason, uint64_t ms = 0) {
  auto record = record_at(ms);
  record.mutable_communicator_aborted()->set_comm_id(communicator);
  record.mutable_communicator_aborted()->set_reason(std::move(reason));
  return record;
}

/// One operation of four ranks from start to end: seven records.
inline std::vector<proto::Record> whole_operation(uint64_t communicator, uint64_t sequence) {
  std::vector<proto::Record> records{operation_enqueued(communicator, sequence),
                                     operation_started(communicator, sequence)};
  for (uint32_t rank = 0; rank < 4; ++rank)
    records.push_back(rank_ended(communicator, sequence, rank, rank + 1));
  records.push_back(operation_ended(communicator, sequence, gpu_sim::SUCCESS));
  return records;
}

} // namespace ringmaster::test
