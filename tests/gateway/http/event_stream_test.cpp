// Server-sent events of a real server.
#include "tests/gateway/http/http_cluster.hpp"
#include "tests/gateway/http/loopback_client.hpp"

#include <doctest/doctest.h>

#include <thread>

using namespace ringmaster;
using namespace ringmaster::gateway;
using namespace ringmaster::test;

namespace {

const std::string request = "GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";

/// Reads events until `wanted` accepts one; returns it.
json read_event(
  const http_cluster& served, const std::string& wanted_name,
  const std::function<bool(const json&)>& wanted = [](auto&) { return true; },
  const std::function<void()>& when_connected = [] {}) {
  auto client = served.client();
  std::string text;
  json result;
  bool is_first = true;
  client.Get("/api/v1/events", [&](const char* data, size_t size) {
    text.append(data, size);
    for (auto end = text.find("\n\n"); end != std::string::npos; end = text.find("\n\n")) {
      const auto event = text.substr(0, end);
      text.erase(0, end + 2);
      const auto data_at = event.find("\ndata: ");
      if (std::exchange(is_first, false)) {
        CHECK(event.starts_with("event: snapshot\n"));
        when_connected();
      }
      if (data_at == std::string::npos || event.substr(0, data_at) != "event: " + wanted_name)
        continue;
      auto found = json::parse(event.substr(data_at + 7));
      if (wanted(found)) {
        result = std::move(found);
        return false;
      }
    }
    return true;
  });
  return result;
}

size_t streams_of(const http_cluster& served) {
  const auto text = served.client().Get("/metrics")->body;
  const std::string name = "\nringmaster_gateway_event_streams ";
  return static_cast<size_t>(std::stoul(text.substr(text.find(name) + name.size())));
}

} // namespace

TEST_CASE("events: a reader gets the state, then what changes") {
  http_cluster served;
  served.await_ready();
  CHECK(differences(read_event(served, "snapshot"), "status.json") == "");
  const auto change = [&] {
    std::scoped_lock lock{served.cluster->mutex};
    auto& status = served.cluster->status;
    status.set_time_ns(status.time_ns() + 250'000'000);
    status.mutable_communicators(0)->mutable_ranks(2)->mutable_latest()->set_round(5);
  };
  const auto delta = read_event(
    served, "delta", [](auto& x) { return x.contains("ranks"); }, change);
  CHECK(delta["ranks"][0]["communicator"] == 7);
  bool has_round = false;
  for (auto& rank : delta["ranks"][0]["ranks"])
    has_round = has_round || (rank["rank"] == 2 && rank["round"] == 5);
  CHECK(has_round);
  CHECK(delta["version"].get<uint64_t>() == delta["base"].get<uint64_t>() + 1);
}

TEST_CASE("events: records, the timeline and steps of trainings") {
  http_cluster served;
  served.await_ready();
  const auto journal = read_event(
    served, "journal", [](auto& x) { return x["records"].size() == 1; },
    [&] { served.cluster->append(device_died(3, "killed")); });
  CHECK(differences(journal, "event_journal.json") == "");
  CHECK(journal["records"][0]["device"] == "0x3");
  const auto timeline = read_event(
    served, "timeline", [](auto&) { return true; }, [&] { served.cluster->append(device_died(4, "killed")); });
  CHECK(differences(timeline, "event_timeline.json") == "");
  const auto training = read_event(
    served, "training", [](auto&) { return true; }, [&] { served.cluster->append(training_step(5, 0, 1, 0)); });
  CHECK(differences(training, "event_training.json") == "");
  const auto many = read_event(
    served, "journal", [](auto& x) { return x["skipped"] > 0; },
    [&] {
      std::scoped_lock lock{served.cluster->mutex};
      for (uint64_t i = 0; i < 500; ++i) {
        auto record = rank_ended(7, i, 0, 1);
        REQUIRE(!served.cluster->journal->append({&record, 1}));
      }
    });
  CHECK(many["records"].size() <= 100); // ranks' parts are counted only
}

TEST_CASE("events: streams have a limit, leave threads for other requests, and are given back") {
  http_options options;
  options.event_streams_max = 3;
  options.requests_max = 4;
  http_cluster served{options};
  served.await_ready();
  {
    loopback_client one{served.port}, two{served.port}, three{served.port}, four{served.port};
    for (auto* each : {&one, &two, &three}) {
      each->send(request);
      CHECK(each->read_until("event: snapshot").find("200 OK") != std::string::npos);
    }
    four.send(request);
    CHECK(four.read_until("too many readers").find(" 503 ") != std::string::npos);
    CHECK(streams_of(served) == 3);
    CHECK(served.get("/api/v1/status")["version"] > 0);
  }
  while (streams_of(served) != 0) // they notice within a second that their clients have left
    std::this_thread::yield();
}

TEST_CASE("events: a reader that does not read is dropped, and delays no other") {
  http_options options;
  options.limits.event = std::chrono::milliseconds{50};
  http_cluster served{options};
  served.await_ready();
  loopback_client slow{served.port}, quick{served.port};
  slow.read_slowly();
  slow.send(request);
  quick.send(request);
  quick.read_until("event: snapshot");
  while (streams_of(served) != 2)
    std::this_thread::yield();
  std::string read;
  std::thread reading{[&] { read = quick.read_until("the last word"); }};
  std::string name(60'000, 'x');
  uint64_t changes = 0;
  while (streams_of(served) == 2) { // each change is a large event, until the slow reader's buffers are full
    std::scoped_lock lock{served.cluster->mutex};
    name[0] = static_cast<char>('a' + changes++ % 26);
    served.cluster->status.mutable_communicators(0)->set_name(name);
    served.cluster->status.set_time_ns(served.cluster->status.time_ns() + 1'000'000);
  }
  CHECK(streams_of(served) == 1);
  CHECK(slow.is_closed_by_server());
  served.cluster->append(device_died(9, "the last word"));
  reading.join();
  CHECK(read.find("the last word") != std::string::npos);
}

TEST_CASE("events: the gateway closes all streams when it stops") {
  http_cluster served;
  served.await_ready();
  loopback_client reader{served.port};
  reader.send(request);
  reader.read_until("event: snapshot");
  served.server.reset();
  CHECK(reader.is_closed_by_server());
}
