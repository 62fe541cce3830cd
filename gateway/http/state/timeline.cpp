#include "gateway/http/state/timeline.hpp"

#include "gateway/http/state/record_json.hpp"
#include "runtime/journal/record_filter.hpp"
#include "runtime/journal/record_text.hpp"

namespace ringmaster::gateway {

namespace {

/// What the record is on the timeline; empty: it does not belong there.
const char* what_of(const proto::Record& record) {
  using proto::Record;
  switch (record.event_case()) {
    case Record::kCoordinatorStarted: return "coordinator";
    case Record::kNodeJoined:
    case Record::kDeviceJoined: return "join";
    case Record::kNodeLeft: return record.node_left().lost() ? "loss" : "leave";
    case Record::kDeviceLeft: return "leave";
    case Record::kDeviceDied: return "loss";
    case Record::kCommunicatorCreated:
    case Record::kCommunicatorDestroyed: return "communicator";
    case Record::kCommunicatorAborted: return "abort";
    case Record::kCallsRefused:
    case Record::kCommunicatorRefused: return "refused";
    case Record::kEpochOpened: return "epoch";
    case Record::kFaultInjected: return "fault";
    case Record::kDeviceSlow: return record.device_slow().has_ended() ? "" : "slow";
    default: return "";
  }
}

std::string node_of(const proto::Record& record) {
  if (record.has_node_joined())
    return record.node_joined().name();
  if (record.has_node_left())
    return record.node_left().name();
  return record.has_device_joined() ? record.device_joined().node_name() : "";
}

int ranks_of(const proto::Record& record) {
  if (record.has_epoch_opened())
    return record.epoch_opened().device_ids_size();
  return record.has_communicator_created() ? record.communicator_created().device_ids_size() : 0;
}

} // namespace

json timeline::add(uint64_t index, const proto::Record& record) {
  const std::string what = what_of(record);
  if (what.empty())
    return nullptr;
  const auto communicator = communicator_of(record);
  const auto device = device_of(record);
  const uint64_t epoch = record.has_epoch_opened() ? record.epoch_opened().epoch() : 0;
  if (events_.size() == events_max)
    events_.pop_front();
  return events_.emplace_back(json{{"index", index},
                                   {"time_ms", json_ms(record.time_ns())},
                                   {"what", what},
                                   {"tone", tone_name(record)},
                                   {"communicator", communicator ? communicator->value : 0},
                                   {"epoch", epoch},
                                   {"ranks", ranks_of(record)},
                                   {"device", device == device_id{} ? "" : json_id(device)},
                                   {"node", node_of(record)},
                                   {"text", sentence_of(record)}});
}

} // namespace ringmaster::gateway
