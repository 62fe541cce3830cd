#include "gateway/http/state/record_json.hpp"

#include "runtime/journal/record_filter.hpp"
#include "runtime/journal/record_text.hpp"

namespace ringmaster::gateway {

device_id device_of(const proto::Record& record) {
  using proto::Record;
  switch (record.event_case()) {
    case Record::kDeviceJoined: return device_id{record.device_joined().metadata().deviceid().value()};
    case Record::kDeviceLeft: return device_id{record.device_left().device_id()};
    case Record::kDeviceDied: return device_id{record.device_died().device_id()};
    case Record::kRankEnded: return device_id{record.rank_ended().device_id()};
    case Record::kInputCheckpoint: return device_id{record.input_checkpoint().device_id()};
    case Record::kCommandEnded: return device_id{record.command_ended().device_id()};
    case Record::kFaultInjected: return device_id{record.fault_injected().device_id()};
    default: return device_id{};
  }
}

std::string_view tone_name(const proto::Record& record) {
  switch (tone_of(record)) {
    case tone::good: return "good";
    case tone::warning: return "warning";
    case tone::bad: return "bad";
    case tone::plain: break;
  }
  return "plain";
}

json record_json(uint64_t index, const proto::Record& record) {
  const auto* event = proto::Record::descriptor()->FindFieldByNumber(record.event_case());
  const auto communicator = communicator_of(record);
  const auto device = device_of(record);
  return {{"index", index},
          {"time_ms", json_ms(record.time_ns())},
          {"kind", kind_of(record)},
          {"event", event != nullptr ? event->name() : ""},
          {"tone", tone_name(record)},
          {"text", sentence_of(record)},
          {"communicator", communicator ? communicator->value : 0},
          {"device", device == device_id{} ? "" : json_id(device)},
          {"record", json::parse(json_of(record))}};
}

} // namespace ringmaster::gateway
