#include "runtime/journal/traces/trace_places.hpp"

#include "messages/wire_ids.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/journal/record_text.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace ringmaster {

namespace {

constexpr uint64_t first_pid = 2;
constexpr uint64_t first_tid = 1;

/// The stream, or 0 if it is the device's default one.
stream_id other_stream(stream_id stream) {
  return number_on_device(stream) == 1 ? stream_id{} : stream;
}

} // namespace

void trace_places::learn(const proto::Record& record) {
  if (record.has_node_joined()) {
    auto& x = record.node_joined();
    nodes_[node_id{x.node_id()}].place = fmt::format("{}{}{} (pid {})", x.name(), x.host().empty() ? "" : " on ",
                                                     x.host(), x.pid());
  } else if (record.has_device_joined()) {
    auto& x = record.device_joined();
    nodes_of_devices_[id_of(x.metadata())] = node_id{x.node_id()};
  } else if (record.has_node_clock()) {
    auto& best = nodes_[node_id{record.node_clock().node_id()}].clock;
    if (!best || record.node_clock().error_ns() < best->error_ns())
      best = record.node_clock();
  }
}

node_id trace_places::node_of(device_id device) const {
  auto known = nodes_of_devices_.find(device);
  auto node = known == nodes_of_devices_.end() ? nodes_.end() : nodes_.find(known->second);
  return node == nodes_.end() || node->second.place.empty() ? node_id{} : node->first;
}

trace_places::process_key trace_places::process_of(device_id device) const {
  auto node = node_of(device);
  return node == node_id{} ? process_key{node_id{UINT64_MAX}, device} : process_key{node, {}};
}

void trace_places::use(device_id device, stream_id stream) {
  streams_[device].insert({stream_id{}, other_stream(stream)});
  processes_[process_of(device)].insert(device);
}

bool trace_places::have_nodes() const {
  return !processes_.empty() && processes_.begin()->first.second == device_id{};
}

uint64_t trace_places::pid(device_id device) const {
  const auto process = processes_.find(process_of(device));
  ensure(process != processes_.end() && process->second.contains(device), "a device with a number is in the trace");
  return first_pid + static_cast<uint64_t>(std::distance(processes_.begin(), process));
}

uint64_t trace_places::tid(device_id device, stream_id stream) const {
  auto result = first_tid;
  for (auto other : processes_.at(process_of(device))) {
    auto& streams = streams_.at(other);
    if (other == device) {
      ensure(streams.contains(other_stream(stream)), "a stream with a number is in the trace");
      return result + static_cast<uint64_t>(std::distance(streams.begin(), streams.find(other_stream(stream))));
    }
    result += static_cast<uint64_t>(streams.size());
  }
  return result;
}

uint64_t trace_places::time_of(device_id device, uint64_t ns) const {
  auto node = nodes_.find(node_of(device));
  if (node == nodes_.end() || !node->second.clock)
    return ns;
  return static_cast<uint64_t>(static_cast<int64_t>(ns) - node->second.clock->offset_ns());
}

std::string trace_places::text_of(const known_node& x) const {
  if (!x.clock)
    return x.place;
  auto offset = x.clock->offset_ns();
  if (x.clock->error_ns() == 0 && offset == 0)
    return x.place + "; same clock as the coordinator";
  return fmt::format("{}; its clock was {} {} the coordinator's, +- {}", x.place,
                     duration_text(static_cast<uint64_t>(std::abs(offset))), offset < 0 ? "behind" : "ahead of",
                     duration_text(x.clock->error_ns()));
}

std::vector<trace_places::name> trace_places::names() const {
  std::vector<name> result{{coordinator_pid, std::nullopt, "coordinator"}, {events.pid, events.tid, "events"}};
  if (have_nodes())
    result.push_back({operations.pid, operations.tid, "operations start"});
  for (auto& [process, devices] : processes_) {
    bool is_node = process.second == device_id{};
    result.push_back({pid(*devices.begin()), std::nullopt,
                      is_node ? text_of(nodes_.at(process.first)) : fmt::format("device {:#x}", process.second)});
    for (auto device : devices)
      for (auto stream : streams_.at(device)) {
        auto text = stream == stream_id{} ? std::string{"default stream"}
                                          : fmt::format("stream {}", number_on_device(stream));
        result.push_back({pid(device), tid(device, stream),
                          is_node ? fmt::format("device {:#x} {}", device, text) : std::move(text)});
      }
  }
  return result;
}

} // namespace ringmaster
