#include "runtime/journal/operation_state.hpp"

#include "runtime/invariants/ensure.hpp"
#include "runtime/journal/record_filter.hpp"

#include <algorithm>

namespace ringmaster {

void advance(proto::OperationState& state, const proto::Record& record, uint64_t index) {
  auto key = operation_of(record);
  ensure(key.has_value(), "an operation's record names the operation");
  ensure(index > state.last_index(), "an operation's records are in the order of the timeline");
  state.set_comm_id(key->communicator.value);
  state.set_sequence(key->sequence.value);
  if (state.first_index() == 0)
    state.set_first_index(index);
  state.set_last_index(index);
  if (record.has_operation_started()) {
    state.set_epoch(record.operation_started().epoch());
    state.set_attempts(state.attempts() + 1);
    state.clear_ranks_started_ns();
    state.clear_ranks_ended_ns();
  } else if (record.has_rank_ended()) {
    auto& rank = record.rank_ended();
    if (rank.epoch() != state.epoch() || rank.started_ns() == 0)
      return;
    if (state.ranks_started_ns() == 0 || rank.started_ns() < state.ranks_started_ns())
      state.set_ranks_started_ns(rank.started_ns());
    state.set_ranks_ended_ns(std::max(state.ranks_ended_ns(), rank.ended_ns()));
  } else if (record.has_operation_ended()) {
    auto& end = record.operation_ended();
    state.set_status(end.status());
    state.set_error(end.error());
    state.set_epoch(end.epoch());
    state.set_attempts(std::max(state.attempts(), end.attempts()));
  }
}

void advance(proto::JournalState& state, const proto::Record& record) {
  ensure(state.first_index() >= 1 && state.first_index() <= state.last_index() + 1, "a timeline's bounds are in order");
  state.set_last_index(state.last_index() + 1);
  auto device = [&](uint64_t id) { state.set_device_id(std::max(state.device_id(), id)); };
  auto node = [&](uint64_t id) { state.set_node_id(std::max(state.node_id(), id)); };
  if (auto communicator = communicator_of(record))
    state.set_comm_id(std::max(state.comm_id(), communicator->value));
  if (record.has_ids_reserved()) {
    auto& ids = record.ids_reserved(); // sets the ids, even to lower ones
    state.set_node_id(ids.node_id());
    state.set_device_id(ids.device_id());
    state.set_comm_id(ids.comm_id());
  } else if (record.has_node_joined()) {
    node(record.node_joined().node_id());
  } else if (record.has_device_joined()) {
    node(record.device_joined().node_id());
    device(record.device_joined().metadata().deviceid().value());
  } else if (record.has_communicator_created()) {
    for (auto id : record.communicator_created().device_ids())
      device(id);
  } else if (record.has_command_ended()) {
    state.set_stream_id(std::max(state.stream_id(), record.command_ended().stream_id()));
  } else if (record.has_rank_ended()) {
    state.set_stream_id(std::max(state.stream_id(), record.rank_ended().stream_id()));
  }
}

proto::JournalState empty_journal() {
  proto::JournalState state;
  state.set_first_index(1);
  return state;
}

} // namespace ringmaster
