#include "gateway/http/metrics/journal_totals.hpp"
#include "gateway/http/metrics/process_metrics.hpp"
#include "gateway/http/state/cluster_metrics.hpp"
#include "gateway/http/state/record_json.hpp"
#include "gateway/http/state/timeline.hpp"
#include "gateway/http/state/training_runs.hpp"
#include "tests/gateway/http/fake_cluster.hpp"
#include "tests/gateway/http/json_shape.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>

using namespace ringmaster;
using namespace ringmaster::gateway;
using namespace ringmaster::test;

namespace {

proto::Record ended(gpu_sim::Status status, uint64_t took_ns, uint32_t attempts = 1) {
  auto record = record_at(100);
  auto& x = *record.mutable_operation_ended();
  x.set_comm_id(7);
  x.set_status(status);
  x.set_started_ns(new_year_ns);
  x.set_ended_ns(new_year_ns + took_ns);
  x.set_bytes(1000);
  x.set_world_size(8);
  x.set_attempts(attempts);
  x.set_algorithm("ring");
  return record;
}

proto::Record opened(uint64_t epoch) {
  auto record = record_at(100);
  auto& x = *record.mutable_epoch_opened();
  x.set_comm_id(7);
  x.set_epoch(epoch);
  x.add_device_ids(1);
  x.add_device_ids(2);
  if (epoch > 1)
    x.add_rerun(3);
  return record;
}

std::vector<proto::Record> some_of_all() {
  std::vector<proto::Record> result{ended(gpu_sim::SUCCESS, 2'000'000),
                                    ended(gpu_sim::SUCCESS, 3'000'000'000, 2),
                                    ended(gpu_sim::FAILED, 10'000),
                                    opened(1),
                                    opened(2),
                                    device_died(3, "killed"),
                                    training_step(1, 0, 0.5, 10)};
  result.push_back(device_died(4, "hung"));
  result.back().mutable_device_died()->set_noticed_by("suspicion");
  result.push_back(device_died(5, "?"));
  result.back().mutable_device_died()->set_noticed_by("something {new=\"\n");
  auto& met = *result.emplace_back(record_at(1)).mutable_operations_met();
  met.set_operations(5000);
  met.set_bytes(100);
  met.set_world_size(4);
  auto& command = *result.emplace_back(record_at(1)).mutable_command_ended();
  command.set_kind("copy_in");
  command.set_bytes(4096);
  command.set_started_ns(new_year_ns);
  command.set_ended_ns(new_year_ns + 30'000);
  auto& node = *result.emplace_back(record_at(1)).mutable_node_left();
  node.set_name("node-2");
  node.set_lost(true);
  result.emplace_back(record_at(1)).mutable_fault_injected()->set_what("killed");
  result.push_back(rank_ended(7, 1, 0, 1));
  result.emplace_back(record_at(1)).mutable_verdict()->set_kind(proto::Verdict::HUNG);
  return result;
}

std::string text_of(const journal_totals& totals) {
  metric_page page;
  totals.write_to(page);
  return page.text();
}

bool has(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

} // namespace

TEST_CASE("metrics: counts of the journal") {
  journal_totals totals;
  for (auto& record : some_of_all())
    totals.add(record);
  const auto text = text_of(totals);
  CHECK(has(text, R"(ringmaster_operations_total{kind="all_reduce",outcome="success"} 2)"));
  CHECK(has(text, R"(ringmaster_operations_total{kind="all_reduce",outcome="failure"} 1)"));
  CHECK(has(text, R"(ringmaster_operations_retried_total{kind="all_reduce"} 1)"));
  CHECK(has(text, R"(ringmaster_operation_input_bytes_total{kind="all_reduce"} 24000)"));
  CHECK(has(text, R"(ringmaster_operation_duration_seconds_bucket{kind="all_reduce",le="1e-05"} 1)"));
  CHECK(has(text, R"(ringmaster_operation_duration_seconds_bucket{kind="all_reduce",le="0.0025"} 2)"));
  CHECK(has(text, R"(ringmaster_operation_duration_seconds_bucket{kind="all_reduce",le="+Inf"} 3)"));
  CHECK(has(text, R"(ringmaster_operation_duration_seconds_count{kind="all_reduce"} 3)"));
  CHECK(has(text, "ringmaster_mailbox_operations_total 5000"));
  CHECK(has(text, "ringmaster_epochs_opened_total 2"));
  CHECK(has(text, "ringmaster_operations_rerun_total 1"));
  CHECK(has(text, R"(ringmaster_devices_lost_total{noticed_by="monitor"} 1)"));
  CHECK(has(text, R"(ringmaster_devices_lost_total{noticed_by="suspicion"} 1)"));
  CHECK(has(text, R"(ringmaster_devices_lost_total{noticed_by="other"} 1)"));
  CHECK(has(text, R"(ringmaster_nodes_gone_total{how="lost"} 1)"));
  CHECK(has(text, R"(ringmaster_verdicts_total{kind="hung"} 1)"));
  CHECK(has(text, R"(ringmaster_verdicts_total{kind="broken"} 0)"));
  CHECK(has(text, R"(ringmaster_commands_total{kind="copy_in",outcome="success"} 1)"));
  CHECK(has(text, "ringmaster_training_steps_total 1"));
  CHECK(has(text, "ringmaster_training_samples_total 64"));
  CHECK(has(text, "ringmaster_faults_injected_total 1"));
}

TEST_CASE("metrics: they are a function of the records, in any portions") {
  journal_totals once, again;
  const auto records = some_of_all();
  for (auto& record : records)
    once.add(record);
  for (auto& record : records)
    again.add(record);
  CHECK(text_of(once) == text_of(again));
}

TEST_CASE("metrics: promtool accepts the names and the format of all of them") {
  journal_totals totals;
  training_runs runs;
  for (auto& record : some_of_all()) {
    totals.add(record);
    runs.add(record);
  }
  metric_page page;
  cluster_facts facts;
  facts.last_index = 20;
  write_cluster(page, example_status(), facts, {{"link", 5}, {"memory", 7}});
  totals.write_to(page);
  write_trainings(page, runs);
  write_process(page);
  const auto text = page.text();
  CHECK(has(text, "ringmaster_journal_lag_records 20"));
  CHECK(has(text, R"(ringmaster_devices{state="free"} 1)"));
  CHECK(has(text, R"(ringmaster_suspicion_late_answers{communicator="7"} 2)"));
  CHECK(has(text, R"(ringmaster_route_bytes_total{route="memory"} 7)"));
  CHECK(has(text, R"(ringmaster_training_loss{run="1"} 0.5)"));
  if (std::system("command -v promtool >/dev/null 2>&1") != 0) {
    MESSAGE("promtool is not installed: Debian's package prometheus has it");
    return;
  }
  auto* tool = ::popen("promtool check metrics", "w");
  REQUIRE(tool != nullptr);
  std::fputs(text.c_str(), tool);
  CHECK(::pclose(tool) == 0);
}

TEST_CASE("metrics: a duration is in the bucket of its bound") {
  duration_histogram x;
  x.add(1e-5);
  x.add(1e-3);
  x.add(11);
  const auto metric = x.metric();
  CHECK(metric.bucket.front().cumulative_count == 1);
  CHECK(metric.bucket.back().cumulative_count == 3);
  CHECK(std::isinf(metric.bucket.back().upper_bound));
  CHECK(metric.sample_sum == doctest::Approx(11.00101));
}

TEST_CASE("timeline: epochs and losses, the latest of them") {
  timeline x;
  uint64_t index = 0;
  for (auto& record : some_of_all())
    x.add(++index, record);
  std::vector<std::string> what;
  for (auto& event : x.events())
    what.push_back(event["what"]);
  CHECK(what == std::vector<std::string>{"epoch", "epoch", "loss", "loss", "loss", "loss", "fault"});
  CHECK(differences(json{{"events", json::array({x.events()[1]})}}, "timeline.json") == "");
  CHECK(x.events()[1]["epoch"] == 2);
  CHECK(x.events()[1]["ranks"] == 2);
  CHECK(x.add(++index, ended(gpu_sim::SUCCESS, 5)).is_null());
  for (size_t i = 0; i < timeline::events_max + 5; ++i)
    x.add(++index, opened(i + 3));
  CHECK(x.events().size() == timeline::events_max);
}

TEST_CASE("records: a hostile name stays one text") {
  auto record = record_at(0);
  auto& x = *record.mutable_communicator_created();
  x.set_comm_id(9);
  x.add_device_ids(12);
  x.set_name("<script>alert(1)</script>\"\n\x1b[31m\xff");
  const auto written = record_json(5, record);
  CHECK(written["event"] == "communicator_created");
  CHECK(written["communicator"] == 9);
  const auto text = text_of(written);
  CHECK(text.find('\n') == std::string::npos);
  CHECK(json::parse(text)["record"]["communicator_created"]["comm_id"] == "9");
  CHECK(event_text("journal", written).find('\n') == std::string{"event: journal"}.size());
  CHECK(record_json(6, device_died(4, "x"))["device"] == "0x4");
}

TEST_CASE("trainings: the curve of a run, and what is new of it") {
  training_runs runs;
  for (uint64_t step = 0; step < 120; ++step)
    runs.add(training_step(17, step, 2.0 / static_cast<double>(step + 1), step * 125));
  auto all = runs.write(500);
  CHECK(differences(all, "trainings.json") == "");
  auto& run = all["runs"][0];
  CHECK(run["run"] == "17");
  CHECK(run["last_step"] == 119);
  CHECK(run["samples"] == 120 * 64);
  CHECK(run["samples_per_s"] == 512);
  CHECK(run["series"]["step"].size() == 120);
  const auto few = runs.write(10)["runs"][0]["series"];
  CHECK(few["step"].size() <= 10);
  CHECK(few["step"].front() == 0);
  CHECK(few["step"].back() == 119);
  CHECK(runs.take_fresh()["runs"][0]["series"]["step"].size() == 120);
  CHECK(runs.take_fresh().is_null());
  runs.add(training_step(17, 120, NAN, 120 * 125));
  const auto fresh = runs.take_fresh();
  CHECK(differences(fresh, "event_training.json") == "");
  CHECK(json::parse(text_of(fresh))["runs"][0]["loss"].is_null());
}

TEST_CASE("trainings: a run that continues from a checkpoint repeats its steps") {
  training_runs runs;
  for (uint64_t step = 0; step < 10; ++step)
    runs.add(training_step(17, step, 1, step * 100));
  for (uint64_t step = 5; step < 8; ++step)
    runs.add(training_step(17, step, 2, 2000 + step * 100));
  const auto series = runs.write(500)["runs"][0]["series"];
  CHECK(series["step"] == json{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(series["loss"] == json{1, 1, 1, 1, 1, 2, 2, 2});
}

TEST_CASE("trainings: long runs and many runs have limits") {
  training_runs runs;
  for (uint64_t step = 0; step < 3 * training_runs::points_max; ++step)
    runs.add(training_step(17, step, 1, step));
  CHECK(runs.runs()[0]->points.size() <= training_runs::points_max);
  const auto series = runs.write(2000)["runs"][0]["series"];
  CHECK(series["step"].size() <= 2000);
  CHECK(series["step"].back() == 3 * training_runs::points_max - 1);
  for (uint64_t run = 100; run < 150; ++run)
    runs.add(training_step(run, 0, 1, run));
  CHECK(runs.runs().size() == training_runs::runs_max);
  CHECK(runs.runs()[0]->id == 149);
}
