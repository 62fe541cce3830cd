// Documents, actions and refusals of a real server on the loopback address.
#include "tests/gateway/http/http_cluster.hpp"
#include "tests/gateway/http/loopback_client.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace ringmaster;
using namespace ringmaster::gateway;
using namespace ringmaster::test;

namespace {

/// Records 1 to `count`: each tenth is the death of a device, the others start operations of communicator 7.
void fill(fake_cluster::contents& cluster, uint64_t count) {
  for (uint64_t i = 1; i <= count; ++i)
    cluster.append(i % 10 == 0 ? device_died(i, "cause " + std::to_string(i)) : operation_started(7, i));
}

std::vector<uint64_t> indices_of(const json& page) {
  std::vector<uint64_t> result;
  for (auto& record : page.at("records"))
    result.push_back(record.at("index"));
  return result;
}

using indices = std::vector<uint64_t>;

} // namespace

TEST_CASE("http gateway: every document has the fields of its example") {
  http_cluster served;
  fill(*served.cluster, 20);
  served.cluster->append(training_step(5, 0, 1, 0));
  served.await_ready();
  CHECK(differences(served.get("/api/v1/status"), "status.json") == "");
  CHECK(differences(served.get("/api/v1/info"), "info.json") == "");
  CHECK(differences(served.get("/api/v1/journal"), "journal.json") == "");
  CHECK(differences(served.get("/api/v1/timeline"), "timeline.json") == "");
  CHECK(differences(served.get("/api/v1/trainings"), "trainings.json") == "");
  CHECK(differences(served.get("/api/v1/schedule?ranks=4"), "schedule.json") == "");
  CHECK(differences(served.get("/api/v1/nonsense", 404), "error.json") == "");
  const auto trace = served.get("/api/v1/trace?last=10");
  CHECK(trace.contains("traceEvents"));
  const auto openapi = served.get("/api/v1/openapi.json");
  for (auto& [path, what] : openapi["paths"].items())
    if (what.contains("get") && path != "/api/v1/events") {
      const auto answer = served.client().Get(path);
      REQUIRE(answer);
      CHECK_MESSAGE(answer->status == 200, path);
    }
  CHECK(served.client().Get("/healthz")->body == "ok\n");
}

TEST_CASE("http gateway: metrics in Prometheus' format") {
  http_cluster served;
  fill(*served.cluster, 20);
  served.await_ready();
  const auto answer = served.client().Get("/metrics");
  REQUIRE(answer);
  CHECK(answer->get_header_value("Content-Type") == "text/plain; version=0.0.4; charset=utf-8");
  CHECK(answer->body.find("\nringmaster_devices_lost_total{noticed_by=\"monitor\"} 2\n") != std::string::npos);
  CHECK(answer->body.find("\nringmaster_up 1\n") != std::string::npos);
  CHECK(answer->body.find("\nringmaster_journal_lag_records 0\n") != std::string::npos);
  CHECK(answer->body.find("\nringmaster_gateway_http_requests_total{method=\"GET\",status=\"200\"}")
        != std::string::npos);
  CHECK(answer->body.find("\nprocess_resident_memory_bytes ") != std::string::npos);
}

TEST_CASE("http gateway: counts are right again after it was started again") {
  http_cluster first;
  fill(*first.cluster, 12'000);
  first.await_ready();
  first.server.reset();
  http_cluster second;
  {
    std::scoped_lock lock{first.cluster->mutex, second.cluster->mutex};
    std::swap(first.cluster->journal, second.cluster->journal);
  }
  second.await_ready();
  for (;;) { // it was ready for the empty journal, too
    const auto text = second.client().Get("/metrics")->body;
    if (text.find("\nringmaster_devices_lost_total{noticed_by=\"monitor\"} 1200\n") != std::string::npos)
      break;
    std::this_thread::yield();
  }
}

TEST_CASE("http gateway: the journal page by page, filtered and searched") {
  http_cluster served;
  fill(*served.cluster, 12'345);
  auto page = served.get("/api/v1/journal?limit=3");
  CHECK(indices_of(page) == indices{12343, 12344, 12345});
  CHECK(page["more"] == true);
  CHECK(page["last"] == 12345);
  page = served.get("/api/v1/journal?limit=2&before=" + page["oldest"].dump());
  CHECK(indices_of(page) == indices{12341, 12342});
  page = served.get("/api/v1/journal?after=12343");
  CHECK(indices_of(page) == indices{12344, 12345});
  CHECK(page["more"] == false);
  CHECK(indices_of(served.get("/api/v1/journal?kind=device&limit=2")) == indices{12330, 12340});
  CHECK(indices_of(served.get("/api/v1/journal?device=0xa")) == indices{10});
  CHECK(indices_of(served.get("/api/v1/journal?communicator=8")).empty());
  // A text that only the oldest records have is found across pages.
  CHECK(indices_of(served.get("/api/v1/journal?text=CAUSE%2010%20")) == indices{10});
  page = served.get("/api/v1/journal?text=cause%20100&limit=2&after=0");
  CHECK(indices_of(page) == indices{100, 1000});
  CHECK(page["more"] == true);
  page = served.get("/api/v1/journal?text=cause%20100&limit=2&after=" + page["newest"].dump());
  CHECK(indices_of(page) == indices{10000, 10010});
  page = served.get("/api/v1/journal?text=cause%20100&limit=2");
  CHECK(indices_of(page) == indices{10080, 10090});
  page = served.get("/api/v1/journal?text=cause%20100&limit=2&before=" + page["oldest"].dump());
  CHECK(indices_of(page) == indices{10060, 10070});
}

TEST_CASE("http gateway: reading the journal in either direction finds each record once") {
  http_cluster served;
  fill(*served.cluster, 500);
  for (const std::string filter : {"&limit=7", "&limit=7&kind=device", "&limit=3&text=cause"}) {
    std::vector<uint64_t> forward, backward;
    auto page = served.get("/api/v1/journal?after=0" + filter);
    for (;; page = served.get("/api/v1/journal?after=" + page["newest"].dump() + filter)) {
      const auto found = indices_of(page);
      forward.insert(forward.end(), found.begin(), found.end());
      if (page["more"] == false)
        break;
    }
    page = served.get("/api/v1/journal?before=501" + filter);
    for (;; page = served.get("/api/v1/journal?before=" + page["oldest"].dump() + filter)) {
      const auto found = indices_of(page);
      backward.insert(backward.begin(), found.begin(), found.end());
      if (page["more"] == false)
        break;
    }
    CHECK(forward == backward);
    CHECK(forward.size() == (filter == "&limit=7" ? 500 : 50));
    CHECK(std::is_sorted(forward.begin(), forward.end()));
  }
}

TEST_CASE("http gateway: a parameter that is wrong is named") {
  http_cluster served;
  const auto message = [&](const std::string& path) {
    return served.get(path, 400).at("error").at("message").get<std::string>();
  };
  CHECK(message("/api/v1/journal?limit=0") == "limit must be a whole number from 1 to 1000, not '0'");
  CHECK(message("/api/v1/journal?limit=1e3") == "limit must be a whole number from 1 to 1000, not '1e3'");
  CHECK(message("/api/v1/journal?limit=-1") == "limit must be a whole number from 1 to 1000, not '-1'");
  CHECK(message("/api/v1/journal?limit=1&limit=2") == "the parameter 'limit' is given twice");
  CHECK(message("/api/v1/journal?after=1&before=2") == "give after or before, not both");
  CHECK(message("/api/v1/journal?colour=red").find("no parameter 'colour'") != std::string::npos);
  CHECK(message("/api/v1/journal?kind=devices").find("allowed are coordinator, node, device") != std::string::npos);
  CHECK(message("/api/v1/journal?device=four") == "a device is named by its number, such as 0x4 or 4, not 'four'");
  CHECK(message("/api/v1/journal?text=%ff") == "text must be UTF-8");
  CHECK(message("/api/v1/journal?text=" + std::string(300, 'a')) == "text must not be longer than 200 bytes");
  CHECK(message("/api/v1/schedule?ranks=65") == "ranks must be a whole number from 1 to 64, not '65'");
  CHECK(message("/api/v1/schedule?algorithm=rings").find("ring") != std::string::npos);
  CHECK(message("/api/v1/status?x=%1b%5b31m").find('\x1b') == std::string::npos);
}

TEST_CASE("http gateway: an operator kills, hangs, slows and drains") {
  http_cluster served;
  served.await_ready();
  auto answer = served.post("/api/v1/devices/0x4/kill");
  REQUIRE(answer);
  CHECK_MESSAGE(answer->status == 200, answer->body);
  CHECK(differences(json::parse(answer->body), "action.json") == "");
  CHECK(json::parse(answer->body)["text"] == "device 0x4 of node-1 dies");
  CHECK(served.post("/api/v1/devices/5/hang", R"({"for_ms": 300})")->status == 200);
  CHECK(served.post("/api/v1/devices/5/slow", R"({"delay_ms": 0.5, "at_step": 3})")->status == 200);
  CHECK(served.post("/api/v1/devices/0x7/hang", "")->status == 200);
  std::unique_lock lock{served.cluster->mutex};
  auto& faults = served.cluster->faults;
  REQUIRE(faults.size() == 4);
  CHECK(faults[0].first == device_id{4});
  CHECK(faults[0].second.kind() == proto::FaultRequest::KILL);
  CHECK(faults[1].second.delay_ns() == 300'000'000);
  CHECK(faults[2].second.delay_ns() == 500'000);
  CHECK(faults[2].second.step() == 3);
  CHECK(faults[3].second.delay_ns() == 0);
  lock.unlock();
  answer = served.post("/api/v1/nodes/node-2/drain", R"({"timeout_ms": 1000})");
  CHECK(differences(json::parse(answer->body), "drain.json") == "");
  CHECK(served.post("/api/v1/devices/0x44/kill")->status == 404);
  CHECK(served.post("/api/v1/nodes/node-9/drain")->status == 404);
  CHECK(served.post("/api/v1/nodes/..%2f..%2fetc/drain")->status == 404);
  lock.lock();
  CHECK(served.cluster->drained == std::vector<std::string>{"node-2"});
  CHECK(faults.size() == 4);
}

TEST_CASE("http gateway: an action with a wrong body does nothing") {
  http_cluster served;
  for (const auto* body :
       {"{", "[]", "null", "7", R"({"delay_ms": "5"})", R"({"delay_ms": -1})", R"({"delay_ms": 1e300})",
        R"({"delay": 5})", "{}", R"({"delay_ms": 5, "at_step": 1.5})", "{\"delay_ms\": 5} trailing"})
    CHECK_MESSAGE(served.post("/api/v1/devices/0x4/slow", body)->status == 400, body);
  CHECK(served.post("/api/v1/devices/0/kill")->status == 400);
  CHECK(served.post("/api/v1/devices/0x4/kill", R"({"for_ms": 5})")->status == 400);
  CHECK(served.post("/api/v1/devices/0x4/kill", std::string(20'000, ' '))->status == 413);
  CHECK(served.post("/api/v1/devices/0x4/kill", std::string(10'000, '['))->status == 400);
  CHECK(served.post("/api/v1/nodes/node-1/drain", R"({"timeout_ms": 60001})")->status == 400);
  std::scoped_lock lock{served.cluster->mutex};
  CHECK(served.cluster->faults.empty());
  CHECK(served.cluster->drained.empty());
}

TEST_CASE("http gateway: without the token, and for other sites, nothing changes") {
  http_cluster served;
  const std::string bearer = std::string{"Bearer "} + http_cluster::secret;
  const auto kill = [&](httplib::Headers headers, const char* type = "application/json") {
    return served.client().Post("/api/v1/devices/0x4/kill", headers, "{}", type)->status;
  };
  CHECK(kill({}) == 401);
  CHECK(kill({{"Authorization", "Bearer nonsense-0123456789"}}) == 401);
  CHECK(kill({{"Authorization", bearer}, {"Origin", "https://evil.example"}}) == 403);
  CHECK(kill({{"Authorization", bearer}, {"Sec-Fetch-Site", "cross-site"}}) == 403);
  CHECK(kill({{"Authorization", bearer}, {"Host", "evil.example"}}) == 403);
  CHECK(kill({{"Authorization", bearer}}, "text/plain") == 415);
  CHECK(served.client().Get("/api/v1/devices/0x4/kill")->status == 404);
  CHECK(served.client().Options("/api/v1/devices/0x4/kill")->status == 405);
  CHECK(served.client().Get("/api/v1/status", {{"Host", "evil.example"}})->status == 403);
  std::unique_lock lock{served.cluster->mutex};
  CHECK(served.cluster->faults.empty());
  lock.unlock();
  http_cluster read_only{{}, false};
  CHECK(read_only.post("/api/v1/devices/0x4/kill")->status == 403);
  CHECK(read_only.get("/api/v1/info")["operators"] == false);
}

TEST_CASE("http gateway: hostile names do not become markup") {
  http_cluster served;
  auto record = record_at(0);
  record.mutable_communicator_created()->set_name("</script><img src=x onerror=alert(1)>\xff\n");
  served.cluster->append(record);
  served.await_ready();
  const auto answer = served.client().Get("/api/v1/journal");
  REQUIRE(answer);
  CHECK(answer->get_header_value("Content-Type") == "application/json");
  CHECK(answer->get_header_value("X-Content-Type-Options") == "nosniff");
  const auto policy = answer->get_header_value("Content-Security-Policy");
  CHECK(policy.find("default-src 'self'") != std::string::npos);
  CHECK(policy.find("frame-ancestors 'none'") != std::string::npos);
  CHECK(policy.find("unsafe") == std::string::npos);
  CHECK(json::parse(answer->body)["records"].size() == 1);
  const auto refused = served.client().Get("/<script>alert(1)</script>");
  REQUIRE(refused);
  CHECK(refused->get_header_value("Content-Type") == "application/json");
  CHECK(refused->body.find("<script>") == std::string::npos);
}

TEST_CASE("http gateway: every file of the page is part of the program") {
  http_cluster served;
  const std::filesystem::path folder = std::string{RINGMASTER_SOURCE_DIR} + "/gateway/web";
  if (!std::filesystem::exists(folder / "index.html"))
    return;
  for (auto& entry : std::filesystem::directory_iterator{folder}) {
    const auto extension = entry.path().extension();
    if (extension != ".html" && extension != ".js" && extension != ".css" && extension != ".svg")
      continue;
    std::ifstream file{entry.path(), std::ios::binary};
    const std::string bytes{std::istreambuf_iterator<char>{file}, {}};
    const auto name = entry.path().filename().string();
    const auto answer = served.client().Get(name == "index.html" ? "/" : "/" + name);
    REQUIRE(answer);
    CHECK_MESSAGE(answer->status == 200, name);
    CHECK_MESSAGE(answer->body == bytes, name);
    CHECK(answer->get_header_value("Cache-Control") == "no-cache");
  }
}

TEST_CASE("http gateway: without a coordinator it says so, and serves the last state") {
  http_cluster served;
  served.await_ready();
  {
    std::scoped_lock lock{served.cluster->mutex};
    served.cluster->failure = make_error(errc::unreachable, "it has exited");
  }
  while (served.client().Get("/readyz")->status == 200)
    std::this_thread::yield();
  CHECK(served.client().Get("/readyz")->body.find("it has exited") != std::string::npos);
  CHECK(served.client().Get("/healthz")->status == 200);
  const auto status = served.get("/api/v1/status");
  CHECK(status["coordinator"]["reachable"] == false);
  CHECK(status["devices"].size() == 12);
  CHECK(served.get("/api/v1/journal", 503)["error"]["code"] == "unreachable");
  CHECK(served.client().Get("/metrics")->body.find("\nringmaster_up 0\n") != std::string::npos);
}

TEST_CASE("http gateway: where other hosts reach it, it starts with tokens and TLS only") {
  const auto refuse = [](http_options x) {
    x.where = {"0.0.0.0", 0};
    const auto result = x.server();
    return result ? std::string{} : render(result.error());
  };
  temporary_directory dir;
  const auto token = (dir.path() / "token").string();
  std::ofstream{token} << http_cluster::secret;
  CHECK(refuse({}).find("--reader-token") != std::string::npos);
  http_options x;
  x.open_reading = true;
  CHECK(refuse(x) == "");
  x.operator_token = token;
  CHECK(refuse(x).find("in clear") != std::string::npos);
  x = {};
  x.certificate = token;
  CHECK(refuse(x).find("both") != std::string::npos);
  x.key = token;
  CHECK(refuse(x).find("certificate") != std::string::npos);
}
