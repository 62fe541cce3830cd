#include "runtime/journal/traces/trace.hpp"

#include "runtime/journal/record_filter.hpp"
#include "tests/support/records.hpp"

#include <doctest/doctest.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <cmath>
#include <map>
#include <string_view>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

using fields = google::protobuf::Map<std::string, google::protobuf::Value>;

std::vector<fields> events(const std::string& json) {
  google::protobuf::Struct trace;
  auto status = google::protobuf::util::JsonStringToMessage(json, &trace);
  REQUIRE_MESSAGE(status.ok(), status.ToString());
  std::vector<fields> result;
  for (auto& event : trace.fields().at("traceEvents").list_value().values())
    result.push_back(event.struct_value().fields());
  return result;
}

std::string text(const fields& event, const std::string& key) {
  return event.at(key).string_value();
}

double number(const fields& event, const std::string& key) {
  return event.at(key).number_value();
}

// The events with this phase.
std::vector<fields> of_phase(const std::vector<fields>& all, std::string_view phase) {
  std::vector<fields> result;
  for (auto& event : all)
    if (text(event, "ph") == phase)
      result.push_back(event);
  return result;
}

// "device 0x3/default stream" by process and track.
std::map<std::pair<int, int>, std::string> tracks(const std::vector<fields>& all) {
  std::map<int, std::string> processes;
  std::map<std::pair<int, int>, std::string> result;
  auto name = [](const fields& event) { return event.at("args").struct_value().fields().at("name").string_value(); };
  for (auto& event : of_phase(all, "M")) {
    auto pid = static_cast<int>(number(event, "pid"));
    if (text(event, "name") == "process_name")
      processes[pid] = name(event);
    if (text(event, "name") == "thread_name")
      result[{pid, static_cast<int>(number(event, "tid"))}] = processes.at(pid) + "/" + name(event);
  }
  return result;
}

} // namespace

TEST_CASE("trace: shows each rank's part on its device's track") {
  std::vector<proto::Record> records;
  for (uint64_t ms = 10; auto& record : whole_operation(7, 3)) {
    record.set_time_ns(new_year_ns + ms++ * 1'000'000);
    if (record.has_rank_ended()) {
      record.mutable_rank_ended()->set_started_ns(new_year_ns + 11'000'250);
      record.mutable_rank_ended()->set_ended_ns(record.time_ns());
    }
    records.push_back(record);
  }
  auto all = events(trace_of(records).json);
  auto slices = of_phase(all, "X");
  auto names = tracks(all);
  REQUIRE(slices.size() == 4);
  for (size_t rank = 0; rank < 4; ++rank) {
    auto& slice = slices[rank];
    CHECK(text(slice, "name") == "all_reduce 3");
    CHECK(names.at({number(slice, "pid"), number(slice, "tid")})
          == "device 0x" + std::to_string(rank + 1) + "/default stream");
    CHECK(number(slice, "ts") == doctest::Approx(1000.25));
    CHECK(number(slice, "dur") == doctest::Approx(999.75 + 1000.0 * static_cast<double>(rank)));
    auto& args = slice.at("args").struct_value().fields();
    CHECK(text(args, "algorithm") == "ring");
    CHECK(number(args, "bytes") == 4096);
    CHECK(number(args, "comm") == 7);
    CHECK(number(args, "epoch") == 1);
    CHECK(number(args, "sequence") == 3);
  }
}

TEST_CASE("trace: a device that hangs has a slice of its operation, which ends when the device is given up") {
  auto created = record_at(0);
  created.mutable_communicator_created()->set_comm_id(7);
  for (uint64_t device : {1, 2, 3, 4})
    created.mutable_communicator_created()->add_device_ids(device);
  auto hung = device_died(3, "3 of its last 5 answers were late", 900);
  hung.mutable_device_died()->set_noticed_by("suspicion");
  std::vector<proto::Record> records{created, operation_enqueued(7, 1, 1), operation_enqueued(7, 2, 2),
                                     operation_started(7, 1, 1, 2), operation_started(7, 2, 1, 2)};
  for (uint32_t rank : {0, 1, 2, 3})
    records.push_back(rank_ended(7, 1, rank, rank + 1, 10 + rank));
  for (auto& record : {operation_ended(7, 1, gpu_sim::SUCCESS, 14), rank_ended(7, 2, 0, 1, 20), hung})
    records.push_back(record);
  auto slices = [](const std::vector<proto::Record>& shown, const std::vector<proto::Record>& context) {
    std::map<std::string, fields> result; // by the device's track
    auto all = events(trace_of(shown, context).json);
    auto names = tracks(all);
    for (auto& slice : of_phase(all, "X"))
      result[names.at({number(slice, "pid"), number(slice, "tid")})] = slice;
    return result;
  };
  auto all = slices(records, records);
  auto& slice = all.at("device 0x3/default stream");
  CHECK(text(slice, "name") == "all_reduce 2: hung");
  CHECK(number(slice, "ts") == doctest::Approx(12'000)); // when it was done with the first one
  CHECK(number(slice, "dur") == doctest::Approx(888'000));
  auto& args = slice.at("args").struct_value().fields();
  CHECK(text(args, "phase") == "hung");
  CHECK(number(args, "rank") == 2);
  CHECK(text(args, "error") == "3 of its last 5 answers were late");
  CHECK(text(all.at("device 0x2/default stream"), "name") == "all_reduce 2: running");
  CHECK(text(all.at("device 0x1/default stream"), "name") == "all_reduce 2");
  CHECK(slices({rank_ended(7, 2, 0, 1, 20)}, records).count("device 0x3/default stream") == 1);
  CHECK(slices({hung}, records).count("device 0x3/default stream") == 1);
  CHECK(slices({rank_ended(7, 1, 0, 1, 10)}, records).count("device 0x3/default stream") == 0);
  auto late = records; // the communicator's own words may be written first
  late.pop_back();
  auto opened = record_at(899);
  opened.mutable_epoch_opened()->set_comm_id(7);
  opened.mutable_epoch_opened()->set_epoch(2);
  for (uint64_t device : {1, 2, 4})
    opened.mutable_epoch_opened()->add_device_ids(device);
  for (auto& record : {opened, operation_started(7, 2, 2, 899), hung})
    late.push_back(record);
  CHECK(text(slices(late, late).at("device 0x3/default stream"), "name") == "all_reduce 2: hung");
  records.back().mutable_device_died()->set_noticed_by("monitor");
  CHECK(text(slices(records, records).at("device 0x3/default stream"), "name") == "all_reduce 2: died");
}

TEST_CASE("trace: a shared-memory operation has a slice on each of its devices, after the stream's previous one") {
  auto first = operation_ended(7, 1, gpu_sim::SUCCESS, 4), second = operation_ended(7, 2, gpu_sim::FAILED, 7);
  for (auto* x : {&first, &second})
    for (uint64_t device : {5, 6})
      x->mutable_operation_ended()->add_device_ids(device);
  second.mutable_operation_ended()->set_started_ns(new_year_ns + 3'000'000);
  std::vector<proto::Record> records{
    operation_started(7, 1, 1, 2), operation_started(7, 2, 1, 3), first, command_ended(6, 0, "copy", "", 5), second,
    device_died(6, "killed", 9)};
  auto trace = trace_of(records);
  CHECK(trace.slices == 5);
  CHECK(trace.instants == 1);
  auto all = events(trace.json);
  auto names = tracks(all);
  std::map<std::string, std::vector<std::string>> seen; // by track: "all_reduce 1 0+2000"
  for (auto& slice : of_phase(all, "X"))
    seen[names.at({number(slice, "pid"), number(slice, "tid")})].push_back(
      text(slice, "name") + " " + std::to_string(std::lround(number(slice, "ts"))) + "+"
      + std::to_string(std::lround(number(slice, "dur"))));
  CHECK(seen.at("device 0x5/default stream")
        == std::vector<std::string>{"all_reduce 1 0+2000", "all_reduce 2: failed 2000+3000"});
  CHECK(seen.at("device 0x6/default stream")
        == std::vector<std::string>{"all_reduce 1 0+2000", "copy 2500+500", "all_reduce 2: failed 3000+2000"});
  auto begun = operation_started(7, 3, 1, 5); // it hangs in the next one, which began behind this
  auto created = record_at(0);
  created.mutable_communicator_created()->set_comm_id(7);
  for (uint64_t device : {5, 6})
    created.mutable_communicator_created()->add_device_ids(device);
  std::vector<proto::Record> later{created, operation_started(7, 2, 1, 3), begun, second, device_died(6, "killed", 9)};
  size_t died = 0;
  for (auto& slice : of_phase(events(trace_of(later).json), "X"))
    if (text(slice, "name") == "operation 3: died" && ++died)
      CHECK(number(slice, "dur") == doctest::Approx(2000)); // from 7 to 9 ms
  CHECK(died == 1);
  CHECK(concerns(second, device_id{6}));
  CHECK_FALSE(concerns(second, device_id{7}));
}

TEST_CASE("trace: each stream has a track of commands, and deaths are instants of the coordinator") {
  std::vector<proto::Record> records{device_died(3, "a \"quoted\" cause\n", 5), command_ended(3, 9, "copy_in", "", 6),
                                     command_ended(3, 4, "copy_out", "", 7), command_ended(1, 0, "copy", "", 8)};
  auto all = events(trace_of(records).json);
  auto names = tracks(all);
  auto slices = of_phase(all, "X");
  REQUIRE(slices.size() == 3);
  auto track = [&](const fields& event) { return names.at({number(event, "pid"), number(event, "tid")}); };
  CHECK(track(slices[0]) == "device 0x3/stream 9");
  CHECK(track(slices[1]) == "device 0x3/stream 4");
  CHECK(track(slices[2]) == "device 0x1/default stream");
  CHECK(number(slices[0], "ts") == doctest::Approx(500));
  auto instants = of_phase(all, "i");
  REQUIRE(instants.size() == 1);
  CHECK(track(instants[0]) == "coordinator/events");
  CHECK(number(instants[0], "ts") == 0);
  CHECK(text(instants[0], "name") == "device 0x3 died: a \"quoted\" cause\\n (noticed by monitor)");
}

TEST_CASE("trace: no time is negative, even of events before the first record or without a start") {
  auto early = rank_ended(1, 1, 0, 1, 1);
  early.mutable_rank_ended()->set_started_ns(new_year_ns - 3'000'000);
  auto unknown = rank_ended(1, 2, 0, 1, 2);
  unknown.mutable_rank_ended()->clear_started_ns();
  unknown.mutable_rank_ended()->clear_ended_ns();
  std::vector<proto::Record> records{operation_enqueued(1, 1, 0), early, unknown};
  auto slices = of_phase(events(trace_of(records).json), "X");
  REQUIRE(slices.size() == 2);
  CHECK(number(slices[0], "ts") == 0);
  CHECK(number(slices[0], "dur") == doctest::Approx(4000));
  CHECK(number(slices[1], "ts") == doctest::Approx(5000));
  CHECK(number(slices[1], "dur") == 0);
}

TEST_CASE(
  "trace: a node is a process, by the coordinator's clock, and arrows lead to its ranks from where they began") {
  std::vector<proto::Record> records;
  for (uint64_t node : {1, 2}) {
    auto joined = record_at(0);
    joined.mutable_node_joined()->set_node_id(node);
    joined.mutable_node_joined()->set_name("node-" + std::to_string(node));
    joined.mutable_node_joined()->set_host("host" + std::to_string(node));
    joined.mutable_node_joined()->set_pid(810 + node);
    records.push_back(joined);
    for (uint64_t device : {2 * node - 1, 2 * node}) {
      auto there = record_at(0);
      there.mutable_device_joined()->mutable_metadata()->mutable_deviceid()->set_value(device);
      there.mutable_device_joined()->set_node_id(node);
      records.push_back(there);
    }
  }
  for (auto [offset, error] : {std::pair{6'000'000, 900'000}, std::pair{5'000'000, 100'000}}) { // the better one counts
    auto clock = record_at(1);
    clock.mutable_node_clock()->set_node_id(2);
    clock.mutable_node_clock()->set_offset_ns(offset);
    clock.mutable_node_clock()->set_error_ns(static_cast<uint64_t>(error));
    records.push_back(clock);
  }
  records.push_back(operation_started(7, 1, 1, 2));
  for (uint32_t rank : {0, 2})
    records.push_back(rank_ended(7, 1, rank, rank + 1, 10)); // by their own clocks
  records.push_back(command_ended(4, 0, "copy", "", 12));
  auto all = events(trace_of(records).json);
  auto names = tracks(all);
  std::map<std::string, fields> slices;
  for (auto& slice : of_phase(all, "X"))
    slices[names.at({number(slice, "pid"), number(slice, "tid")})] = slice;
  REQUIRE(slices.size() == 4);
  const std::string second = "node-2 on host2 (pid 812); its clock was 5 ms ahead of the coordinator's, +- 100 us";
  CHECK(number(slices.at("node-1 on host1 (pid 811)/device 0x1 default stream"), "ts") == doctest::Approx(8'750));
  CHECK(number(slices.at(second + "/device 0x3 default stream"), "ts") == doctest::Approx(3'750));
  CHECK(slices.count(second + "/device 0x4 default stream") == 1);
  auto& start = slices.at("coordinator/operations start"); // one, for all ranks
  CHECK(text(start, "name") == "communicator 7 starts 1");
  CHECK(number(start, "ts") == doctest::Approx(2'000));
  auto from = of_phase(all, "s"), to = of_phase(all, "f");
  REQUIRE(from.size() == 2);
  REQUIRE(to.size() == 2);
  for (size_t i : {0, 1}) {
    CHECK(number(from[i], "id") == number(to[i], "id"));
    CHECK(number(from[i], "ts") == number(start, "ts"));
    CHECK(number(from[i], "pid") == number(start, "pid"));
  }
  CHECK(number(to[0], "ts") == doctest::Approx(8'750));
  CHECK(number(to[1], "ts") == doctest::Approx(3'750));
  CHECK(number(from[0], "id") != number(from[1], "id"));
}

TEST_CASE("trace: finds labels in records that are not shown") {
  auto context = whole_operation(7, 3);
  std::vector<proto::Record> shown{rank_ended(7, 3, 0, 1)};
  CHECK(text(of_phase(events(trace_of(shown, context).json), "X").at(0), "name") == "all_reduce 3");
  CHECK(text(of_phase(events(trace_of(shown).json), "X").at(0), "name") == "operation 3");
}

TEST_CASE("trace: of no records is valid") {
  auto all = events(trace_of({}).json);
  CHECK(of_phase(all, "X").empty());
  CHECK(tracks(all).size() == 1);
}
