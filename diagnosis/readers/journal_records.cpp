#include "diagnosis/readers/journal_records.hpp"

#include "runtime/journal/record_filter.hpp"
#include "runtime/journal/traces/trace_places.hpp"
#include "runtime/text/utf8.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace ringmaster::diagnosis {

namespace {

using proto::Record;

std::string_view torch_type(proto::DataType x) {
  switch (x) {
    case proto::FLOAT64: return "Double";
    case proto::FLOAT32: return "Float";
    case proto::INT32: return "Int";
    case proto::INT64: return "Long";
    case proto::INT8: return "Char";
    case proto::UINT8: return "Byte";
    case proto::UINT32: return "UInt32";
    case proto::UINT64: return "UInt64";
    case proto::FLOAT16: return "Half";
    case proto::BFLOAT16: return "BFloat16";
    case proto::FLOAT8_E4M3: return "Float8_e4m3fn";
    case proto::FLOAT8_E5M2: return "Float8_e5m2";
    default: return "unknown";
  }
}

bool has_root(proto::CollectiveKind x) {
  return x == proto::REDUCE || x == proto::BROADCAST || x == proto::GATHER || x == proto::SCATTER;
}

class journal_reader {
public:
  explicit journal_reader(std::span<const Record> records) : records_(records) {}

  job_records read();

private:
  struct device_place {
    uint32_t rank = 0;
    std::string host;
    uint64_t pid = 0;
  };
  using call_place = std::pair<uint32_t, size_t>; ///< A rank, and the number of its call.

  void number_devices();
  template <class Ids>
  void set_members(uint64_t communicator, uint64_t epoch, const std::string& name, const Ids& devices);
  void take(const Record& record);
  void enqueue(const proto::OperationEnqueued& x, int64_t time_ns);
  void start(const proto::OperationStarted& x, int64_t time_ns);
  void end_rank(const proto::RankReport& x);
  void end(const proto::OperationEnded& x);
  uint32_t shape_of(const proto::Collective& x);
  void add_notes();
  void settle();

  std::span<const Record> records_;
  job_records job_;
  std::map<uint64_t, device_place> devices_;
  std::map<uint64_t, uint32_t> groups_;                                    ///< The present group of each communicator.
  std::map<uint64_t, std::string> names_;                                  ///< Of communicators.
  std::map<std::pair<uint64_t, uint64_t>, std::vector<call_place>> calls_; ///< By communicator and sequence.
  std::map<std::string, uint32_t> shapes_;
};

void journal_reader::number_devices() {
  std::map<uint64_t, std::pair<std::string, uint64_t>> nodes;
  const proto::CommunicatorCreated* largest = nullptr;
  for (auto& record : records_) {
    if (record.has_node_joined())
      nodes[record.node_joined().node_id()] = {record.node_joined().host(), record.node_joined().pid()};
    if (record.has_device_joined()) {
      auto& node = nodes[record.device_joined().node_id()];
      devices_[record.device_joined().metadata().deviceid().value()] = {0, node.first, node.second};
    }
    if (record.has_communicator_created()) {
      auto& x = record.communicator_created();
      for (auto device : x.device_ids())
        devices_[device];
      if (largest == nullptr || x.device_ids_size() > largest->device_ids_size())
        largest = &x;
    }
    if (record.has_epoch_opened())
      for (auto device : record.epoch_opened().device_ids())
        devices_[device];
  }
  uint32_t next = 0;
  std::map<uint64_t, uint32_t> ranks;
  if (largest != nullptr)
    for (auto device : largest->device_ids())
      ranks.emplace(device, next++);
  for (auto& [device, place] : devices_) {
    auto [at, added] = ranks.emplace(device, next);
    next += added;
    place.rank = at->second;
  }
  job_.ranks.resize(next);
  for (uint32_t i = 0; i < next; ++i) {
    job_.ranks[i].rank = i;
    job_.ranks[i].has_calls = job_.ranks[i].reports_starts = true;
  }
  for (auto& [device, place] : devices_) {
    job_.ranks[place.rank].host = place.host;
    if (place.pid != 0)
      job_.ranks[place.rank].pid = place.pid;
    job_.ranks[place.rank].sources = {fmt::format("device {:#x}", device)};
  }
}

template <class Ids>
void journal_reader::set_members(uint64_t communicator, uint64_t epoch, const std::string& name, const Ids& devices) {
  process_group group;
  group.name = epoch == 1 ? std::to_string(communicator) : fmt::format("{}, epoch {}", communicator, epoch);
  group.description = name;
  for (auto device : devices)
    group.members.push_back(devices_[device].rank);
  groups_[communicator] = job_.group_of(std::move(group));
}

uint32_t journal_reader::shape_of(const proto::Collective& x) {
  auto key = fmt::format("{} {}", x.count(), static_cast<int>(x.datatype()));
  auto [at, added] = shapes_.emplace(key, static_cast<uint32_t>(job_.shapes.size()));
  if (added) {
    call_shape shape;
    shape.input_elements = shape.output_elements = x.count();
    shape.input_sizes = shape.output_sizes = job_.texts.of(fmt::format("[[{}]]", x.count()));
    shape.input_types = shape.output_types = job_.texts.of(torch_type(x.datatype()));
    job_.shapes.push_back(shape);
  }
  return at->second;
}

void journal_reader::enqueue(const proto::OperationEnqueued& x, int64_t time_ns) {
  auto& request = x.request();
  auto group = groups_.find(request.comm_id());
  if (group == groups_.end())
    return;
  auto& collective = request.collective();
  rank_call call;
  call.group = group->second;
  call.sequence = x.sequence();
  call.created_ns = time_ns;
  call.shape = shape_of(collective);
  if (has_root(collective.kind()))
    call.root = collective.root();
  call.name = job_.texts.of(lower_case(proto::CollectiveKind_Name(collective.kind())));
  auto& places = calls_[{request.comm_id(), x.sequence()}];
  auto& members = job_.groups[group->second].members;
  for (uint32_t i = 0; i < members.size(); ++i) {
    auto own = call;
    if (collective.kind() == proto::SEND_RECV) {
      if (i != collective.root() && i != collective.peer())
        continue;
      own.form = i == collective.root() ? call_form::send : call_form::receive;
      own.peer = i == collective.root() ? collective.peer() : collective.root();
      own.name = job_.texts.of(i == collective.root() ? "send" : "recv");
    }
    places.emplace_back(members[i], job_.ranks[members[i]].calls.size());
    job_.ranks[members[i]].calls.push_back(own);
  }
}

void journal_reader::start(const proto::OperationStarted& x, int64_t time_ns) {
  for (auto [rank, index] : calls_[{x.comm_id(), x.sequence()}]) {
    auto& call = job_.ranks[rank].calls[index];
    call.state = call_state::started;
    call.started_ns = time_ns;
  }
}

void journal_reader::end_rank(const proto::RankReport& x) {
  auto device = devices_.find(x.device_id());
  if (device == devices_.end())
    return;
  if (x.phase() == proto::RankReport::BROKEN)
    job_.ranks[device->second.rank].notes.push_back({rank_note::kind::failed, x.error(), "journal"});
  if (x.phase() != proto::RankReport::FINISHED && x.phase() != proto::RankReport::COMMITTED)
    return;
  for (auto [rank, index] : calls_[{x.comm_id(), x.sequence()}])
    if (rank == device->second.rank) {
      auto& call = job_.ranks[rank].calls[index];
      call.state = call_state::completed;
      call.started_ns = static_cast<int64_t>(x.started_ns());
      call.completed_ns = static_cast<int64_t>(x.ended_ns());
    }
}

void journal_reader::end(const proto::OperationEnded& x) {
  if (x.status() != gpu_sim::SUCCESS)
    return;
  for (auto [rank, index] : calls_[{x.comm_id(), x.sequence()}]) {
    auto& call = job_.ranks[rank].calls[index];
    if (call.state == call_state::completed)
      continue;
    call.state = call_state::completed;
    call.started_ns = static_cast<int64_t>(x.started_ns());
    call.completed_ns = static_cast<int64_t>(x.ended_ns());
  }
}

void journal_reader::take(const Record& record) {
  const auto time_ns = static_cast<int64_t>(record.time_ns());
  switch (record.event_case()) {
    case Record::kCommunicatorCreated: {
      auto& x = record.communicator_created();
      names_[x.comm_id()] = x.name();
      return set_members(x.comm_id(), 1, x.name(), x.device_ids());
    }
    case Record::kEpochOpened: {
      auto& x = record.epoch_opened();
      return set_members(x.comm_id(), x.epoch(), names_[x.comm_id()], x.device_ids());
    }
    case Record::kOperationEnqueued: return enqueue(record.operation_enqueued(), time_ns);
    case Record::kOperationStarted: return start(record.operation_started(), time_ns);
    case Record::kRankEnded: return end_rank(record.rank_ended());
    case Record::kOperationEnded: return end(record.operation_ended());
    case Record::kCallsRefused:
      job_.remarks.push_back(fmt::format("communicator {} refused calls: {}", record.calls_refused().comm_id(),
                                         record.calls_refused().reason()));
      return;
    default: return;
  }
}

/// What became of ranks that never reported the end of their part.
void journal_reader::add_notes() {
  for (auto& x : unfinished_ranks(records_)) {
    if (x.how == unfinished_rank::fate::running)
      continue;
    auto what = x.how == unfinished_rank::fate::hung ? rank_note::kind::hung : rank_note::kind::died;
    job_.ranks[devices_[x.device.value].rank].notes.push_back(
      {what, fmt::format("device {:#x} {}: {}", x.device.value, to_string(x.how), x.cause), "journal"});
  }
}

/// Operations before one that completed are over, whatever became of them.
void journal_reader::settle() {
  for (auto& rank : job_.ranks) {
    std::vector<uint64_t> completed(job_.groups.size(), 0);
    for (auto& call : rank.calls)
      if (call.state == call_state::completed)
        completed[call.group] = std::max(completed[call.group], call.sequence);
    for (auto& call : rank.calls)
      if (call.sequence < completed[call.group])
        call.state = call_state::completed;
  }
}

job_records journal_reader::read() {
  number_devices();
  for (auto& record : records_)
    take(record);
  settle();
  add_notes();
  if (!records_.empty())
    for (auto& rank : job_.ranks)
      rank.dumped_ns = static_cast<int64_t>(records_.back().time_ns());
  return std::move(job_);
}

} // namespace

job_records journal_job(std::span<const proto::Record> records) {
  return journal_reader{records}.read();
}

} // namespace ringmaster::diagnosis
