#include "runtime/journal/record_text.hpp"

#include "runtime/journal/record_filter.hpp"
#include "runtime/schedule/collective.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tests/support/records.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

// Without the time in front.
std::string said(const proto::Record& record) {
  auto line = text_of(record);
  return line.substr(line.find("  ") + 2);
}

google::protobuf::Struct parsed(const std::string& json) {
  google::protobuf::Struct result;
  auto status = google::protobuf::util::JsonStringToMessage(json, &result);
  CHECK_MESSAGE(status.ok(), status.ToString());
  return result;
}

} // namespace

TEST_CASE("record text: has the time of day in the reader's zone, or relative to an instant") {
  auto record = device_died(3, "killed", 3'723'004);
  CHECK(text_of(record).starts_with("01:02:03.004  device 0x3"));
  record_text_options opts;
  opts.utc_offset = std::chrono::hours{-2};
  CHECK(text_of(record, opts).starts_with("23:02:03.004  "));
  CHECK(day_of(record, opts.utc_offset) == "2025-12-31");
  CHECK(day_of(record, std::chrono::seconds{0}) == "2026-01-01");
  opts.relative_to_ns = new_year_ns;
  CHECK(text_of(record, opts).starts_with("+3723.004 s  device 0x3") == false); // aligned to the right
  CHECK(text_of(record, opts).find("+3723.004 s  device 0x3") != std::string::npos);
  opts.relative_to_ns = record.time_ns() + 1'500'000'000;
  CHECK(text_of(record, opts).find("-1.500 s  ") != std::string::npos);
}

TEST_CASE("record text: names the event and its subject") {
  CHECK(said(device_died(0x1f, "process 12 was killed"))
        == "device 0x1f died: process 12 was killed (noticed by monitor)");
  CHECK(said(operation_enqueued(7, 3))
        == "communicator 7 operation 3 enqueued: ring all_reduce of 512 float64, sum, "
           "4 KiB a rank");
  CHECK(said(operation_started(7, 3, 2)) == "communicator 7 operation 3 started in epoch 2 over 4 ranks");
  CHECK(said(rank_ended(7, 3, 1, 2))
        == "communicator 7 operation 3 epoch 1: rank 1 (device 0x2) committed in 1.25 ms, "
           "received 6 KiB");
  CHECK(said(operation_ended(7, 3, gpu_sim::SUCCESS))
        == "communicator 7 operation 3 succeeded in epoch 1: ring all_reduce over 4 ranks, 4 KiB a rank, 2 ms");
  CHECK(said(operation_ended(7, 3, gpu_sim::FAILED))
        == "communicator 7 operation 3 failed in epoch 1: device 0x3 died (ring all_reduce over 4 ranks, 4 KiB a rank, "
           "2 ms)");
  record_text_options both;
  both.ranks_took_ns = 1'250'000;
  CHECK(text_of(operation_ended(7, 3, gpu_sim::SUCCESS), both)
          .ends_with("4 KiB a rank, 2 ms, of that its ranks took 1.25 ms"));
  CHECK(said(command_ended(2, 9, "copy_in")) == "device 0x2 stream 9: copy_in of 1 MiB in 500 us");
  CHECK(said(command_ended(2, 0, "send", "rank 1 is gone"))
        == "device 0x2: send of 1 MiB failed after 500 us: rank 1 is gone");

  auto broken = rank_ended(7, 3, 1, 2);
  broken.mutable_rank_ended()->set_phase(proto::RankReport::BROKEN);
  broken.mutable_rank_ended()->set_error("rank 2 refused");
  CHECK(said(broken) == "communicator 7 operation 3 epoch 1: rank 1 (device 0x2) broke after 1.25 ms: rank 2 refused");

  for (auto phase : {proto::RankReport::INTERRUPTED, proto::RankReport::BROKEN}) {
    auto unstarted = rank_ended(7, 3, 1, 2);
    unstarted.mutable_rank_ended()->set_phase(phase);
    unstarted.mutable_rank_ended()->set_started_ns(0);
    CHECK(said(unstarted)
          == fmt::format("communicator 7 operation 3 epoch 1: rank 1 (device 0x2) {} before it started",
                         phase == proto::RankReport::BROKEN ? "broke" : "interrupted"));
  }
  auto interrupted = rank_ended(7, 3, 1, 2);
  interrupted.mutable_rank_ended()->set_phase(proto::RankReport::INTERRUPTED);
  CHECK(said(interrupted)
        == "communicator 7 operation 3 epoch 1: rank 1 (device 0x2) interrupted after 1.25 ms, received 6 KiB");
  auto queued = command_ended(2, 9, "copy_in", "device 0x3 died");
  queued.mutable_command_ended()->set_started_ns(0);
  CHECK(said(queued) == "device 0x2 stream 9: copy_in of 1 MiB failed before it started: device 0x3 died");
  auto cancelled = operation_ended(7, 3, gpu_sim::FAILED);
  cancelled.mutable_operation_ended()->set_started_ns(0);
  CHECK(said(cancelled).ends_with("4 KiB a rank, unknown time)"));

  auto gathered = operation_enqueued(7, 3);
  gathered.mutable_operation_enqueued()->mutable_request()->mutable_collective()->set_kind(proto::ALL_GATHER);
  CHECK(said(gathered) == "communicator 7 operation 3 enqueued: ring all_gather of 512 float64, 4 KiB a rank");
  auto own = operation_enqueued(7, 3);
  own.mutable_operation_enqueued()->mutable_request()->mutable_collective()->set_op(gpu_sim::USER);
  own.mutable_operation_enqueued()->mutable_request()->mutable_collective()->set_user_op("hypot");
  CHECK(said(own) == "communicator 7 operation 3 enqueued: ring all_reduce of 512 float64, hypot, 4 KiB a rank");

  auto step = record_at(0);
  step.mutable_training_step()->set_run(1'795'867'143'123'456'789);
  step.mutable_training_step()->set_strategy("ddp");
  CHECK(said(step).starts_with("training " + training_name(1'795'867'143'123'456'789) + " by ddp: step 0 "));
  CHECK(training_name(1'795'867'143'123'456'789).size() == 6);
  CHECK(training_name(1'795'867'143'123'456'789) != training_name(1'795'867'143'123'456'790));
  CHECK(training_name(12) == "12");

  auto refused = record_at(0);
  auto* call = refused.mutable_communicator_refused();
  call->set_call("CommInit");
  call->set_devices(4);
  call->set_reason("3 devices are free");
  CHECK(said(refused) == "CommInit of 4 devices refused: 3 devices are free");
  call->add_device_ids(1);
  call->add_device_ids(16);
  call->set_name("job");
  CHECK(said(refused) == "CommInit of devices 0x1 0x10 (job) refused: 3 devices are free");
  call->set_call("CommDerive");
  call->set_parent_id(7);
  call->clear_name();
  CHECK(said(refused) == "CommDerive from communicator 7 refused: 3 devices are free");

  auto changed = record_at(0);
  auto* audit = changed.mutable_audit();
  audit->set_role("operator");
  audit->set_name("olga");
  audit->set_address("10.0.0.3:49152");
  audit->set_action("kills device 0x3");
  audit->set_device_id(3);
  CHECK(said(changed) == "operator olga at 10.0.0.3:49152 kills device 0x3");
  CHECK(concerns(changed, device_id{3}));
  audit->clear_name();
  audit->set_action("was refused");
  audit->set_refused("why");
  audit->set_unrecorded(2);
  CHECK(said(changed) == "operator at 10.0.0.3:49152 was refused: why (2 more were refused)");

  auto epoch = record_at(0);
  auto* x = epoch.mutable_epoch_opened();
  x->set_comm_id(7);
  x->set_epoch(2);
  x->add_device_ids(1);
  x->add_device_ids(16);
  x->set_reason("device 0x3 died");
  x->add_rerun(3);
  x->add_rerun(4);
  CHECK(said(epoch)
        == "communicator 7 epoch 2 opened, 2 ranks on devices 0x1 0x10: device 0x3 died; "
           "runs again: operation 3, 4");
}

TEST_CASE("record text: every event has its own text") {
  auto* descriptor = proto::Record::descriptor();
  auto* event = descriptor->FindOneofByName("event");
  REQUIRE(event->field_count() >= 16);
  for (int i = 0; i < event->field_count(); ++i) {
    proto::Record record;
    record.GetReflection()->MutableMessage(&record, event->field(i));
    CAPTURE(event->field(i)->name());
    CHECK(said(record).find("later version") == std::string::npos);
    CHECK(kind_of(record) != "unknown");
    CHECK(parsed(json_of(record)).fields().contains(event->field(i)->name()));
  }
  CHECK(said({}) == "an event that a later version wrote");
}

TEST_CASE("record text: quoted text cannot break the line or control a terminal") {
  auto line = text_of(device_died(1, "two\nlines\x1b[2J\x7f"));
  CHECK(line.find("two\\nlines\\x1b[2J\\x7f") != std::string::npos);
  CHECK(line.find('\n') == std::string::npos);
}

TEST_CASE("record text: JSON is one line with stable names for any text") {
  CHECK(json_of(device_died(3, "killed"))
        == R"({"time_ns":"1767225600000000000","device_died":{"device_id":"3","cause":"killed",)"
           R"("noticed_by":"monitor","noticed_ns":"0"}})");
  for (auto& cause : std::vector<std::string>{"two\nlines", "\"quoted\\\"", std::string("\0\x1f", 2),
                                              "d\xE9"
                                              "faut",
                                              "\xE2\x82\xAC"}) {
    auto json = json_of(device_died(3, cause));
    CHECK(json.find('\n') == std::string::npos);
    auto object = parsed(json);
    CHECK(object.fields().contains("device_died"));
  }
  auto joined = record_at(0);
  joined.mutable_device_joined()->mutable_metadata()->mutable_minmemaddr()->set_value(4096);
  joined.mutable_device_joined()->set_node_name("a \"deviceId\": \\");
  auto json = json_of(joined);
  CHECK(json.find(R"("min_mem_addr":{"value":"4096"})") != std::string::npos);
  CHECK(parsed(json).fields().at("device_joined").struct_value().fields().at("node_name").string_value()
        == "a \"deviceId\": \\");
  auto enqueued = parsed(json_of(operation_enqueued(7, 3)));
  auto& request = enqueued.fields().at("operation_enqueued").struct_value().fields().at("request").struct_value();
  CHECK(request.fields().at("collective").struct_value().fields().at("datatype").string_value() == "FLOAT64");
  CHECK(request.fields().at("inputs").list_value().values().size() == 4);
}

TEST_CASE("record text: JSON has a reduction only for kinds that reduce") {
  for (auto kind : collective_kinds()) {
    auto record = operation_enqueued(7, 3);
    record.mutable_operation_enqueued()->mutable_request()->mutable_collective()->set_kind(kind);
    const auto json = json_of(record);
    CAPTURE(json);
    const auto line = parsed(json);
    const auto& request = line.fields().at("operation_enqueued").struct_value().fields().at("request").struct_value();
    const auto& fields = request.fields().at("collective").struct_value().fields();
    for (auto* name : {"op", "user_op", "factors"})
      CHECK(fields.contains(name) == reduces(kind));
    CHECK(fields.at("kind").string_value() == proto::CollectiveKind_Name(kind));
    CHECK(fields.at("count").string_value() == "512");
    CHECK(request.fields().at("inputs").list_value().values().size() == 4);
  }
}

TEST_CASE("record text: the tone follows the outcome") {
  CHECK(tone_of(operation_ended(1, 1, gpu_sim::SUCCESS)) == tone::good);
  CHECK(tone_of(operation_ended(1, 1, gpu_sim::FAILED)) == tone::bad);
  CHECK(tone_of(device_died(1, "")) == tone::bad);
  CHECK(tone_of(command_ended(1, 1, "copy", "no")) == tone::bad);
  CHECK(tone_of(command_ended(1, 1, "copy")) == tone::plain);
}

TEST_CASE("quantity text: sizes and durations carry units") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(1024) == "1 KiB");
  CHECK(bytes_text(1536) == "1.5 KiB");
  CHECK(bytes_text(uint64_t{100} << 20) == "100 MiB");
  CHECK(bytes_text(UINT64_MAX) == "16 EiB");
  CHECK(count_text(999) == "999");
  CHECK(count_text(176'160'768) == "176 M");
  CHECK(count_text(1'500'000'000) == "1.5 G");
  CHECK(duration_text(0) == "0 ns");
  CHECK(duration_text(999) == "999 ns");
  CHECK(duration_text(12'500) == "12.5 us");
  CHECK(duration_text(3'210'000) == "3.21 ms");
  CHECK(duration_text(120'000'000'000) == "120 s");
}
