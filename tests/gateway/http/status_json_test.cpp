#include "gateway/http/state/status_json.hpp"

#include "gateway/http/state/status_changes.hpp"
#include "tests/gateway/http/fake_cluster.hpp"
#include "tests/gateway/http/json_shape.hpp"

#include <doctest/doctest.h>

#include <random>

using namespace ringmaster;
using namespace ringmaster::gateway;
using namespace ringmaster::test;

namespace {

json written(const proto::ClusterStatus& x) {
  status_writer writer;
  return writer.write(x, {});
}

/// Entries of `changes` take the places of those in `list` with the same key, or follow them.
void merge(json& list, const json& changes, const char* key) {
  for (auto& change : changes) {
    auto place = std::find_if(list.begin(), list.end(), [&](auto& x) { return x.at(key) == change.at(key); });
    if (place == list.end())
      list.push_back(change);
    else
      place->update(change);
  }
}

void remove(json& list, const json& keys, const char* key) {
  for (auto& gone : keys)
    for (size_t i = list.size(); i > 0; --i)
      if (list[i - 1].at(key) == gone)
        list.erase(i - 1);
}

/// What a reader of the events makes of a delta.
json applied(json to, const json& delta) {
  for (const auto* section : {"coordinator", "route", "journal", "rates", "queues", "lost"})
    if (delta.contains(section))
      to[section] = delta[section];
  if (delta.contains("removed")) {
    remove(to["nodes"], delta["removed"]["nodes"], "name");
    remove(to["devices"], delta["removed"]["devices"], "id");
    remove(to["communicators"], delta["removed"]["communicators"], "id");
  }
  for (const auto* list : {"nodes", "devices", "communicators"})
    if (delta.contains(list))
      merge(to[list], delta[list], "id");
  if (delta.contains("ranks"))
    for (auto& change : delta["ranks"])
      for (auto& communicator : to["communicators"])
        if (communicator["id"] == change["communicator"]) {
          if (change["all"] == true)
            communicator["ranks"] = change["ranks"];
          else
            merge(communicator["ranks"], change["ranks"], "rank");
        }
  to["time_ms"] = delta["time_ms"];
  return to;
}

json sorted(json x) {
  for (const auto* list : {"nodes", "devices", "communicators"})
    std::sort(x[list].begin(), x[list].end(), [](auto& a, auto& b) { return a["id"].dump() < b["id"].dump(); });
  return json::parse(nlohmann::json::parse(x.dump()).dump()); // fields in one order
}

} // namespace

TEST_CASE("status: has the fields of openapi.json's example") {
  auto x = written(example_status());
  x["version"] = 1;
  CHECK(differences(x, "status.json") == "");
}

TEST_CASE("status: who waits for whom, and the ring that an operation runs on") {
  const auto x = written(example_status());
  auto& ring = x["communicators"][0];
  CHECK(ring["causes"] == json{2});
  CHECK(ring["ranks"][3]["waits_for"] == json{2});
  CHECK(ring["ranks"][2]["round"] == 3);
  CHECK(ring["topology"]["shape"] == "ring");
  CHECK(ring["topology"]["edges"].size() == 8);
  CHECK(x["queues"]["stream_commands"] == 16);
  CHECK(x["nodes"][0]["devices"] == json{"0x1", "0x2", "0x3", "0x4"});
  CHECK(x["devices"][11]["free"] == true);
  auto& hostile = x["communicators"][1];
  CHECK(hostile["name"] == "<img src=x onerror=alert(1)>"); // a text in JSON; the page shows it as text
  CHECK(hostile["topology"]["shape"] == "none");
}

TEST_CASE("status: a verdict as in the example; of many the latest three") {
  auto x = example_status();
  const auto before = written(x);
  CHECK(before["communicators"][0]["verdicts"] == example("status.json")["communicators"][0]["verdicts"]);
  auto& ring = *x.mutable_communicators(0);
  for (uint64_t number = 2; number <= 5; ++number) {
    *ring.add_verdicts() = ring.verdicts(0);
    ring.mutable_verdicts()->rbegin()->set_number(number);
  }
  const auto after = written(x);
  auto& shown = after["communicators"][0]["verdicts"];
  REQUIRE(shown.size() == 3);
  CHECK(shown[0]["number"] == 3);
  CHECK(shown[2]["number"] == 5);
  const auto delta = status_changes(before, after);
  REQUIRE(delta);
  CHECK(sorted(applied(before, *delta)) == sorted(after));
}

TEST_CASE("status: shapes of algorithms") {
  topology_cache shapes;
  CHECK(shapes.of(proto::BROADCAST, "tree", 8)["shape"] == "tree");
  CHECK(shapes.of(proto::ALL_REDUCE, "ring", 2)["edges"].size() == 2);
  CHECK(shapes.of(proto::ALL_REDUCE, "no such algorithm", 8)["shape"] == "none");
  const auto& naive = shapes.of(proto::ALL_TO_ALL, "pairwise", 100);
  CHECK(naive["truncated"] == true);
  CHECK(naive["edges"].size() == topology_cache::edges_max);
  const auto rounds = schedule_json("all_reduce", "ring", 4);
  REQUIRE(rounds);
  CHECK(differences(*rounds, "schedule.json") == "");
  CHECK((*rounds)["rounds"].size() == 6);
  CHECK((*rounds)["rounds"][0].size() == 4);
  CHECK(!schedule_json("all_reduce", "rings", 4));
  CHECK(!schedule_json("all_reduced", "ring", 4));
}

TEST_CASE("status: an idle cluster does not change") {
  status_writer writer;
  auto x = example_status();
  const auto before = writer.write(x, {});
  x.set_time_ns(x.time_ns() + 250'000'000);
  for (auto& rank : *x.mutable_communicators(0)->mutable_ranks()) // the same answers, 250 ms older, measured late
    rank.set_latest_age_ns(rank.latest_age_ns() + 251'234'567);
  x.mutable_cluster()->mutable_nodes(2)->set_silent_ns(2'050'400'000);
  x.mutable_communicators(0)->set_still_ns(460'900'000);
  x.mutable_communicators(0)->mutable_operations(0)->set_age_ns(281'600'000);
  x.mutable_communicators(1)->mutable_waiting_calls(0)->set_age_ns(1'149'000'000);
  CHECK(!status_changes(before, writer.write(x, {})));
}

TEST_CASE("status: counts and rates go on when a communicator ends") {
  status_writer writer;
  auto x = example_status();
  writer.write(x, {});
  CHECK(writer.route_bytes().at("link") == 4 << 20);
  x.set_time_ns(x.time_ns() + 1'000'000'000);
  x.mutable_communicators(0)->set_operations_ended(31);
  x.mutable_communicators(0)->mutable_routes(1)->set_bytes(6 << 20);
  CHECK(writer.write(x, {})["rates"]["operations_per_s"] == 20);
  x.mutable_communicators()->DeleteSubrange(0, 1);
  x.set_time_ns(x.time_ns() + 1'000'000'000);
  const auto last = writer.write(x, {});
  CHECK(writer.route_bytes().at("link") == 6 << 20);
  CHECK(last["rates"]["bytes_per_s"] == 0);
}

TEST_CASE("status: a delta turns one status into the next, whatever has changed") {
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    std::mt19937 random{seed};
    status_writer writer;
    auto x = example_status();
    auto seen = writer.write(x, {});
    for (int change = 0; change < 10; ++change) {
      x.set_time_ns(x.time_ns() + 250'000'000);
      switch (random() % 8) {
        case 0: x.mutable_cluster()->mutable_nodes(0)->set_draining(random() % 2 == 0); break;
        case 1:
          if (x.cluster().nodes_size() > 1)
            x.mutable_cluster()->mutable_nodes()->RemoveLast();
          break;
        case 2: x.mutable_cluster()->mutable_devices()->RemoveLast(); break;
        case 3: *x.add_communicators() = example_status().communicators(0); break;
        case 4:
          if (x.communicators(0).ranks_size() > 1)
            x.mutable_communicators(0)->mutable_ranks()->RemoveLast();
          break;
        case 5:
          x.mutable_communicators(0)->mutable_ranks(0)->mutable_latest()->set_round(
            static_cast<uint32_t>(random() % 14));
          break;
        case 6: x.mutable_communicators(0)->set_epoch(random() % 5); break;
        default: x.mutable_communicators()->RemoveLast(); *x.add_communicators() = example_status().communicators(1);
      }
      if (x.communicators_size() > 2)
        x.mutable_communicators(2)->set_comm_id(9 + random() % 3);
      const auto now = writer.write(x, {});
      if (const auto delta = status_changes(seen, now))
        seen = applied(seen, *delta);
      else
        seen["time_ms"] = now["time_ms"];
      CHECK(sorted(seen) == sorted(now));
      if (x.communicators_size() > 3)
        x.mutable_communicators()->DeleteSubrange(2, x.communicators_size() - 2);
    }
  }
}

TEST_CASE("status: the documented delta has the fields that are written") {
  status_writer writer;
  auto x = example_status();
  const auto before = writer.write(x, {});
  x.set_time_ns(x.time_ns() + 250'000'000);
  x.mutable_cluster()->mutable_nodes(2)->set_silent_ns(0);
  x.mutable_cluster()->mutable_devices(11)->add_comm_ids(9);
  x.mutable_cluster()->mutable_devices()->DeleteSubrange(10, 1);
  x.mutable_communicators(0)->mutable_ranks(2)->mutable_latest()->set_round(5);
  x.mutable_communicators(0)->set_epoch(3);
  x.mutable_communicators(0)->set_operations_in_flight(2);
  x.mutable_communicators(0)->mutable_routes(0)->set_bytes(9 << 20);
  x.mutable_cluster()->set_route("links");
  x.mutable_cluster()->mutable_gone(0)->set_cause("cut off");
  cluster_facts facts;
  facts.last_index = 5;
  facts.error = "it did not answer";
  auto delta = status_changes(before, writer.write(x, facts));
  REQUIRE(delta);
  (*delta)["version"] = 2;
  (*delta)["base"] = 1;
  CHECK(differences(*delta, "event_delta.json") == "");
}
