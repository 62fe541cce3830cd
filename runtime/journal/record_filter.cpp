#include "runtime/journal/record_filter.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace ringmaster {
namespace {

using proto::Record;

constexpr std::array<std::string_view, 15> kinds{"coordinator", "node",     "device",     "communicator", "epoch",
                                                 "operation",   "rank",     "checkpoint", "call",         "command",
                                                 "fault",       "training", "audit",      "verdict",      "unknown"};

operation_key key(uint64_t communicator, uint64_t sequence) {
  return {communicator_id{communicator}, sequence_number{sequence}};
}

} // namespace

std::span<const std::string_view> record_kinds() {
  return kinds;
}

caf::error check_kind(const std::string& kind) {
  if (kind.empty() || std::ranges::find(kinds, kind) != kinds.end())
    return caf::none;
  return invalid(fmt::format("there is no kind of record '{}'; allowed are {}", kind, fmt::join(record_kinds(), ", ")));
}

std::string_view kind_of(const Record& record) {
  switch (record.event_case()) {
    case Record::kCoordinatorStarted:
    case Record::kIdsReserved: return "coordinator";
    case Record::kNodeJoined:
    case Record::kNodeLeft:
    case Record::kNodeClock: return "node";
    case Record::kDeviceJoined:
    case Record::kDeviceLeft:
    case Record::kDeviceDied:
    case Record::kDeviceSlow: return "device";
    case Record::kCommunicatorCreated:
    case Record::kCommunicatorAborted:
    case Record::kCommunicatorDestroyed: return "communicator";
    case Record::kEpochOpened: return "epoch";
    case Record::kOperationEnqueued:
    case Record::kOperationStarted:
    case Record::kOperationEnded: return "operation";
    case Record::kRankEnded: return "rank";
    case Record::kInputCheckpoint: return "checkpoint";
    case Record::kCallsRefused:
    case Record::kCommunicatorRefused:
    case Record::kOperationsMet: return "call";
    case Record::kCommandEnded: return "command";
    case Record::kFaultInjected: return "fault";
    case Record::kTrainingStep: return "training";
    case Record::kAudit: return "audit";
    case Record::kVerdict: return "verdict";
    case Record::EVENT_NOT_SET: break;
  }
  return "unknown";
}

std::optional<operation_key> operation_of(const Record& record) {
  switch (record.event_case()) {
    case Record::kOperationEnqueued:
      return key(record.operation_enqueued().request().comm_id(), record.operation_enqueued().sequence());
    case Record::kOperationStarted:
      return key(record.operation_started().comm_id(), record.operation_started().sequence());
    case Record::kRankEnded: return key(record.rank_ended().comm_id(), record.rank_ended().sequence());
    case Record::kOperationEnded: return key(record.operation_ended().comm_id(), record.operation_ended().sequence());
    case Record::kInputCheckpoint:
      return key(record.input_checkpoint().comm_id(), record.input_checkpoint().sequence());
    default: return std::nullopt;
  }
}

std::optional<communicator_id> communicator_of(const Record& record) {
  if (auto operation = operation_of(record))
    return operation->communicator;
  switch (record.event_case()) {
    case Record::kCommunicatorCreated: return communicator_id{record.communicator_created().comm_id()};
    case Record::kDeviceSlow: return communicator_id{record.device_slow().comm_id()};
    case Record::kVerdict: return communicator_id{record.verdict().comm_id()};
    case Record::kEpochOpened: return communicator_id{record.epoch_opened().comm_id()};
    case Record::kCommunicatorAborted: return communicator_id{record.communicator_aborted().comm_id()};
    case Record::kCallsRefused: return communicator_id{record.calls_refused().comm_id()};
    case Record::kOperationsMet: return communicator_id{record.operations_met().comm_id()};
    case Record::kCommunicatorRefused:
      if (auto parent = record.communicator_refused().parent_id(); parent != 0)
        return communicator_id{parent};
      return std::nullopt;
    case Record::kCommunicatorDestroyed: return communicator_id{record.communicator_destroyed().comm_id()};
    case Record::kAudit:
      if (auto named = record.audit().comm_id(); named != 0)
        return communicator_id{named};
      return std::nullopt;
    default: return std::nullopt;
  }
}

bool concerns(const Record& record, device_id device) {
  auto is_member = [&](const auto& ids) { return std::find(ids.begin(), ids.end(), device.value) != ids.end(); };
  switch (record.event_case()) {
    case Record::kDeviceJoined: return record.device_joined().metadata().deviceid().value() == device.value;
    case Record::kDeviceLeft: return record.device_left().device_id() == device.value;
    case Record::kDeviceDied: return record.device_died().device_id() == device.value;
    case Record::kDeviceSlow: return record.device_slow().device_id() == device.value;
    case Record::kCommunicatorCreated: return is_member(record.communicator_created().device_ids());
    case Record::kCommunicatorRefused: return is_member(record.communicator_refused().device_ids());
    case Record::kEpochOpened: return is_member(record.epoch_opened().device_ids());
    case Record::kRankEnded: return record.rank_ended().device_id() == device.value;
    case Record::kOperationEnded:
      return is_member(record.operation_ended().device_ids()); // of a shared-memory operation
    case Record::kInputCheckpoint: return record.input_checkpoint().device_id() == device.value;
    case Record::kCommandEnded: return record.command_ended().device_id() == device.value;
    case Record::kFaultInjected: return record.fault_injected().device_id() == device.value;
    case Record::kAudit: return record.audit().device_id() == device.value;
    case Record::kVerdict: {
      auto& culprits = record.verdict().culprits();
      return std::any_of(culprits.begin(), culprits.end(), [&](auto& x) { return x.device_id() == device.value; });
    }
    default: return false;
  }
}

bool record_filter::matches(const Record& record) const {
  return (!communicator || communicator_of(record) == communicator) && (!device || concerns(record, *device))
         && (kind.empty() || kind_of(record) == kind);
}

} // namespace ringmaster
