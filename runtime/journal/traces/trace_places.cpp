#include "runtime/journal/traces/trace_places.hpp"

#include "messages/wire_ids.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/journal/record_text.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

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

namespace {

using proto::Record;
using fate = unfinished_rank::fate;

/// Follows the records: which device executes which attempt of which operation.
class attempts {
public:
  void take(const Record& record);
  /// After the last record.
  void end(uint64_t time_ns);

  std::vector<unfinished_rank> unfinished;

private:
  struct attempt {
    epoch_number epoch;
    uint64_t started_ns = 0;
    std::map<device_id, uint32_t> pending; ///< Ranks that have not reported, by device.
  };

  template <class Ids>
  void set_ranks(communicator_id communicator, epoch_number epoch, const Ids& devices) {
    auto& its = ranks_[communicator];
    its = {epoch, {}};
    for (auto device : devices)
      its.devices.push_back(device_id{device});
  }
  void start(const proto::OperationStarted& x, uint64_t time_ns);
  void rank_ended(const proto::RankReport& x);
  void operation_ended(const Record& record);
  void set_aside(const operation_key& key, const attempt& old);
  void lose(device_id device, fate how, const std::string& cause, uint64_t time_ns);

  struct ranks {
    epoch_number epoch;
    std::vector<device_id> devices;
  };
  std::map<communicator_id, ranks> ranks_;     ///< By communicator, of its present epoch.
  std::map<operation_key, attempt> in_flight_; ///< The latest of each operation.
  /// From attempts that have ended: the loss of a device may be recorded after the end of its operation.
  std::map<device_id, std::pair<operation_key, attempt>> earlier_;
  std::map<device_id, uint64_t> last_end_ns_; ///< A stream executes one command at a time.
};

void attempts::take(const Record& record) {
  switch (record.event_case()) {
    case Record::kCommunicatorCreated: {
      auto& x = record.communicator_created();
      return set_ranks(communicator_id{x.comm_id()}, epoch_number{1}, x.device_ids());
    }
    case Record::kEpochOpened: {
      auto& x = record.epoch_opened();
      return set_ranks(communicator_id{x.comm_id()}, epoch_number{x.epoch()}, x.device_ids());
    }
    case Record::kOperationStarted: return start(record.operation_started(), record.time_ns());
    case Record::kRankEnded: return rank_ended(record.rank_ended());
    case Record::kOperationEnded: return operation_ended(record);
    case Record::kDeviceDied: {
      auto& x = record.device_died();
      auto how = x.noticed_by() == "monitor" ? fate::died
                                             : fate::hung; // all others notice a device that does not answer
      return lose(device_id{x.device_id()}, how, x.cause(), x.noticed_ns() == 0 ? record.time_ns() : x.noticed_ns());
    }
    case Record::kDeviceLeft: {
      auto& x = record.device_left();
      return lose(device_id{x.device_id()}, fate::left, x.cause(), record.time_ns());
    }
    default: return;
  }
}

void attempts::start(const proto::OperationStarted& x, uint64_t time_ns) {
  const operation_key key{communicator_id{x.comm_id()}, sequence_number{x.sequence()}};
  auto& known = ranks_[key.communicator];
  attempt begun{epoch_number{x.epoch()}, time_ns, {}};
  if (known.epoch == begun.epoch)
    for (uint32_t rank = 0; rank < known.devices.size(); ++rank)
      begun.pending.emplace(known.devices[rank], rank);
  auto& latest = in_flight_[key];
  set_aside(key, latest);
  latest = std::move(begun);
}

void attempts::operation_ended(const Record& record) {
  auto& x = record.operation_ended();
  for (auto device : x.device_ids()) { // of a shared-memory operation, which ranks do not report
    auto& last = last_end_ns_[device_id{device}];
    last = std::max(last, x.ended_ns());
  }
  auto i = in_flight_.find(*operation_of(record));
  if (i == in_flight_.end())
    return;
  if (x.device_ids().empty())
    set_aside(i->first, i->second);
  in_flight_.erase(i);
}

void attempts::set_aside(const operation_key& key, const attempt& old) {
  for (auto& [device, rank] : old.pending)
    earlier_.emplace(device, std::pair{key, old});
}

void attempts::rank_ended(const proto::RankReport& x) {
  const device_id device{x.device_id()};
  auto& last = last_end_ns_[device];
  last = std::max(last, x.ended_ns());
  earlier_.erase(device); // it is alive
  auto i = in_flight_.find({communicator_id{x.comm_id()}, sequence_number{x.sequence()}});
  if (i != in_flight_.end() && i->second.epoch == epoch_number{x.epoch()})
    i->second.pending.erase(device);
}

void attempts::lose(device_id device, fate how, const std::string& cause, uint64_t time_ns) {
  std::optional<std::pair<operation_key, attempt>> at;
  if (auto i = earlier_.find(device); i != earlier_.end())
    at = i->second;
  for (auto& [key, x] : in_flight_)
    if (x.pending.count(device) != 0 && (!at || x.started_ns < at->second.started_ns))
      at = {key, x};
  if (!at)
    return;
  auto& [key, x] = *at;
  ensure(x.pending.contains(device), "a lost device had not ended its part");
  auto started = std::max(x.started_ns, last_end_ns_[device]);
  unfinished.push_back({key, x.epoch, x.pending.at(device), device, how, cause, started, std::max(started, time_ns)});
  earlier_.erase(device);
  for (auto& [other, y] : in_flight_)
    y.pending.erase(device);
}

void attempts::end(uint64_t time_ns) {
  std::set<device_id> left;
  earlier_.clear();
  for (auto& [key, x] : in_flight_)
    for (auto& [device, rank] : x.pending)
      left.insert(device);
  for (auto device : left)
    lose(device, fate::running, {}, time_ns);
  for (auto& [key, x] : in_flight_)
    ensure(x.pending.empty(), "all ranks are accounted for at the end");
}

} // namespace

std::string to_string(unfinished_rank::fate x) {
  switch (x) {
    case fate::hung: return "hung";
    case fate::died: return "died";
    case fate::left: return "left";
    case fate::running: return "running";
  }
  return {};
}

std::vector<unfinished_rank> unfinished_ranks(std::span<const Record> records) {
  attempts all;
  uint64_t last_ns = 0;
  for (auto& record : records) {
    all.take(record);
    last_ns = std::max(last_ns, record.time_ns());
  }
  all.end(last_ns);
  return std::move(all.unfinished);
}

} // namespace ringmaster
