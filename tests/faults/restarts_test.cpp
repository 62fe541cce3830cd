// The coordinator's process is killed at every moment and restarted on its store: clusters of several processes in
// virtual time.
#include "tests/support/histories/history_check.hpp"
#include "tests/support/nodes/simulated_nodes.hpp"
#include "tests/support/text_search.hpp"
#include "tests/support/trials/all_reduce_trial.hpp"
#include "tests/support/trials/collective_trial.hpp"

#include <fmt/format.h>
#include <functional>
#include <optional>
#include <vector>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

nodes_options restartable(uint64_t seed, bool one_host) {
  nodes_options result;
  result.seed = seed;
  result.restarts = true;
  result.one_host = one_host;
  result.network.spread = 200us;
  return result;
}

proto::ClusterInfo info_of(simulated_nodes& cluster) {
  proto::ClusterInfoRequest request;
  request.set_communicators(true);
  return cluster.ask_coordinator<proto::ClusterInfo>(request);
}

} // namespace

TEST_CASE("restarts: an idle cluster is found again: nodes, devices with their memory, communicators, ids") {
  simulated_nodes cluster{restartable(1, false)};
  all_reduce_trial trial{cluster, {.in_place = false}};
  const auto before = info_of(cluster);
  for (int i = 0; i < 3; ++i) {
    cluster.kill(0);
    cluster.run_for(50ms);
    cluster.restart_coordinator();
    const auto after = info_of(cluster);
    CHECK(after.devices_size() == before.devices_size());
    for (int k = 0; k < before.devices_size(); ++k)
      CHECK(after.devices(k).metadata().deviceid().value() == before.devices(k).metadata().deviceid().value());
    REQUIRE(after.nodes_size() == before.nodes_size());
    for (int k = 0; k < before.nodes_size(); ++k)
      CHECK(after.nodes(k).node_id() == before.nodes(k).node_id());
    REQUIRE(after.communicators_size() == 1);
    CHECK(after.communicators(0).comm_id() == before.communicators(0).comm_id());
  }
  // It is served as if nothing had happened, and no id is given twice.
  REQUIRE(trial.launch() == "");
  CHECK(cluster.wait(trial.comm.commid()).error() == "");
  CHECK(trial.judge(trial.ranks_but({}), trial.ranks_but({})) == "");
  CHECK(cluster.end() == "");
}

namespace {

struct played_operation {
  collective_options what;
  bool one_host = false;
  proto::FailurePolicy policy = proto::SHRINK;
};

/// A handful of kinds, routes and policies.
std::vector<played_operation> some_operations() {
  return {{{.algorithm = "ring", .ranks = 3, .in_place = true}},
          {{.algorithm = "direct", .ranks = 3, .in_place = true}, true, proto::ABORT},
          {{.algorithm = "direct", .ranks = 3}, true, proto::REPLACE},
          {{.kind = proto::BROADCAST, .algorithm = "auto", .ranks = 3, .root = 1}, false, proto::REPLACE},
          {{.kind = proto::ALL_TO_ALL, .algorithm = "auto", .ranks = 3, .count = 4}, false, proto::ABORT}};
}

nodes_options cluster_for(const played_operation& x, uint64_t seed) {
  auto result = restartable(seed, x.one_host);
  result.devices = {2, 1};
  result.policy = x.policy;
  return result;
}

/// How an operation on an undisturbed cluster ends after this number of messages have been handled in it.
struct disturbed_end {
  uint64_t steps = 0; ///< Until it had ended.
  bool failed = false, reran = false;
};

/// `disturb` is called after this number of messages.
disturbed_end play_with(const played_operation& x, const nodes_options& opts, std::optional<uint64_t> after,
                        const std::function<void(simulated_nodes&)>& disturb) {
  simulated_nodes cluster{opts};
  collective_trial trial{cluster, x.what};
  REQUIRE(trial.launch() == "");
  disturbed_end result;
  if (after) {
    for (uint64_t i = 0; i < *after; ++i)
      cluster.step();
    disturb(cluster);
  } else { // until nothing is in flight
    auto& self = cluster.client();
    proto::CommWaitRequest request;
    request.set_comm_id(trial.comm.commid());
    request.set_timeout_ns(uint64_t{120} * 1000 * 1000 * 1000);
    auto pending = self->request(cluster.host, caf::infinite, std::move(request));
    for (; self->mailbox().empty(); ++result.steps)
      cluster.step();
    pending.receive([](const gpu_sim::GetCommStatusResponse& y) { CHECK(y.error() == ""); },
                    [](const caf::error& problem) { FAIL(render(problem)); });
  }
  const auto status = cluster.wait(trial.comm.commid());
  CHECK(status.devices_size() == 3);
  result.failed = status.status() != gpu_sim::SUCCESS;
  result.reran = status.epoch() > 1;
  if (result.failed)
    CHECK(contains(status.error(), "coordinator's process ended"));
  if (!result.failed && history_check{cluster.history(), trial.comm.commid(), true}.ended.contains(trial.sequence()))
    CHECK(trial.judge() == ""); // else its end was not written
  CHECK(cluster.judge_former_leaders() == "");
  CHECK(cluster.end() == "");
  return result;
}

} // namespace

TEST_CASE("restarts: an operation ends with the right result, at each message at which the coordinator can be killed") {
  uint64_t played = 0, failed = 0, reran = 0;
  for (auto& x : some_operations()) {
    const auto opts = cluster_for(x, ++played);
    const auto steps = play_with(x, opts, {}, {}).steps;
    for (uint64_t after = 0; after < steps; ++after) {
      CAPTURE(text_of(x.what));
      CAPTURE(after);
      const auto end = play_with(x, opts, after, [](simulated_nodes& cluster) {
        cluster.kill(0);
        cluster.run_for(20ms);
        cluster.restart_coordinator();
      });
      ++played;
      failed += end.failed;
      reran += end.reran;
    }
  }
  MESSAGE(fmt::format("{} kills, {} operations failed, {} ran again", played, failed, reran));
  CHECK(reran > 0);
  CHECK(failed < played / 8);
}

TEST_CASE("restarts: an operation ends with the right result, at each message at which its coordinator can be paused "
          "and replaced") {
  uint64_t played = 0, reran = 0;
  const played_operation x{{.algorithm = "ring", .ranks = 3, .in_place = true}};
  auto opts = cluster_for(x, 1);
  opts.standby = true;
  const auto steps = play_with(x, opts, {}, {}).steps;
  for (uint64_t after = 0; after < steps; after += 2) {
    CAPTURE(after);
    opts.seed = after + 1;
    const auto end = play_with(x, opts, after, [](simulated_nodes& cluster) {
      auto& former = cluster.pause(0);
      cluster.run_for(3s);
      CHECK(cluster.leaders() == 2);
      cluster.resume(former);
      cluster.run_for(1s);
    });
    CHECK_FALSE(end.failed);
    ++played;
    reran += end.reran;
  }
  CHECK(reran > played / 8);
}

namespace {

/// Asks for a communicator of two devices, or its end, while the coordinator is killed after this number of messages.
template <class Response, class Request>
Response ask_while_killed(simulated_nodes& cluster, const Request& request, uint64_t after) {
  auto& self = cluster.client();
  auto pending = self->request(cluster.host, caf::infinite, request);
  for (uint64_t i = 0; i < after && self->mailbox().empty(); ++i)
    cluster.step();
  cluster.kill(0);
  cluster.run_for(20ms);
  cluster.restart_coordinator();
  cluster.run_until([&] { return !self->mailbox().empty(); });
  Response result;
  pending.receive([&](Response& x) { result = std::move(x); },
                  [](const caf::error& problem) { FAIL("no answer: ", render(problem)); });
  return result;
}

} // namespace

TEST_CASE(
  "restarts: a communicator is made and destroyed once, at each message at which the coordinator can be killed") {
  for (uint64_t after = 0; after < 80; ++after) {
    CAPTURE(after);
    auto opts = restartable(after + 1, false);
    opts.devices = {2, 1};
    opts.disk_time_max = 1ms;
    simulated_nodes cluster{opts};
    gpu_sim::CommInitRequest request;
    request.set_numdevices(2);
    request.set_defaultpolicy(true);
    const auto made = ask_while_killed<gpu_sim::CommInitResponse>(cluster, request, after);
    REQUIRE(made.error() == "");
    const auto known = info_of(cluster);
    REQUIRE(known.communicators_size() == 1);
    CHECK(known.communicators(0).comm_id() == made.commid());
    proto::CommDestroyRequest end;
    end.set_comm_id(made.commid());
    CHECK(ask_while_killed<proto::CommDestroyResponse>(cluster, end, after).error() == "");
    CHECK(info_of(cluster).communicators_size() == 0);
    // Nothing of it is left where its devices are used again.
    all_reduce_trial trial{cluster, {.ranks = 3}};
    REQUIRE(trial.launch() == "");
    CHECK(cluster.wait(trial.comm.commid()).error() == "");
    CHECK(trial.judge(trial.ranks_but({}), trial.ranks_but({})) == "");
    for (uint32_t rank = 0; rank < 3; ++rank)
      CHECK(cluster.device_at(trial.device(rank)).communicators.size() == 1);
    CHECK(cluster.end() == "");
  }
}

TEST_CASE(
  "restarts: without journal.sync the end of the machine may take communicators, and nothing that uses them hangs") {
  uint64_t lost = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    auto opts = restartable(seed, seed % 2 == 0);
    opts.synced = false;
    simulated_nodes cluster{opts};
    all_reduce_trial trial{cluster, {.in_place = true}};
    REQUIRE(trial.launch() == "");
    for (uint64_t i = 0; i < 5 * seed; ++i)
      cluster.step();
    cluster.kill(0);
    cluster.lose_tail();
    cluster.run_for(20ms);
    cluster.restart_coordinator();
    const auto status = cluster.wait(trial.comm.commid());
    const bool is_lost = !status.error().empty();
    lost += is_lost;
    if (!is_lost)
      CHECK(trial.judge(trial.ranks_but({}), trial.ranks_but({})) == "");
    cluster.run_for(5s);
    if (!is_lost) {
      proto::CommDestroyRequest end;
      end.set_comm_id(trial.comm.commid());
      CHECK(cluster.ask_coordinator<proto::CommDestroyResponse>(end).error() == "");
    }
    const auto info = info_of(cluster);
    if (info.devices_size() == 0)
      continue; // their nodes were in the tail as well
    for (auto& device : info.devices())
      if (is_lost)
        CHECK(cluster.stream_at(device.metadata().deviceid().value()).queue.empty());
    all_reduce_trial fresh{cluster, {.ranks = static_cast<uint32_t>(info.devices_size())}};
    REQUIRE(fresh.launch() == "");
    CHECK(cluster.wait(fresh.comm.commid()).error() == "");
    CHECK(fresh.judge(fresh.ranks_but({}), fresh.ranks_but({})) == "");
    CHECK(cluster.end() == "");
  }
  CHECK(lost > 0);
}

namespace {

constexpr uint64_t nearly_all_bytes = 60'000; ///< Of 65,536 bytes.

proto::AllocateRequest of_nearly_all() {
  proto::AllocateRequest result;
  result.set_bytes(nearly_all_bytes);
  return result;
}

/// A client beside the test's own, in its process, that allocates what it is asked to.
caf::actor other_client(simulated_nodes& cluster) {
  const auto behaviour = [to = cluster.host](caf::event_based_actor* self) -> caf::behavior {
    return {[self, to](const gpu_sim::DeviceId& device, const proto::AllocateRequest& x) {
      auto promise = self->make_response_promise<proto::AllocateResponse>();
      self->request(to, caf::infinite, device, x)
        .then([promise](proto::AllocateResponse& y) mutable { promise.deliver(std::move(y)); },
              [promise](caf::error& problem) mutable { promise.deliver(std::move(problem)); });
      return promise;
    }};
  };
  return cluster.client_system().spawn(behaviour);
}

} // namespace

TEST_CASE("restarts: memory stays its client's, and is freed with it, also if it ends while the coordinator is away") {
  enum class end { after_its_return, meanwhile, of_memory_first };
  for (auto how : {end::after_its_return, end::meanwhile, end::of_memory_first}) {
    CAPTURE(static_cast<int>(how));
    auto options = restartable(3, false);
    options.devices = {1};
    simulated_nodes cluster{options};
    const auto device = info_of(cluster).devices(0).metadata().deviceid();
    auto other = other_client(cluster);
    const auto range = cluster.call<proto::AllocateResponse>(other, device, of_nearly_all());
    REQUIRE(range.error() == "");
    const auto is_free = [&] {
      const auto made = cluster.ask_coordinator<proto::AllocateResponse>(device, of_nearly_all());
      CHECK((made.error().empty() || made.code() == static_cast<uint32_t>(errc::out_of_memory)));
      return made.error().empty();
    };
    cluster.kill(0);
    if (how == end::meanwhile)
      caf::anon_send_exit(other, caf::exit_reason::kill);
    cluster.run_for(20ms);
    cluster.restart_coordinator();
    CHECK(!is_free());
    if (how == end::of_memory_first) { // what another one has there by now is not freed with it
      proto::FreeRequest give_back;
      *give_back.mutable_address() = range.address();
      REQUIRE(cluster.ask_coordinator<proto::FreeResponse>(device, give_back).success());
      REQUIRE(is_free());
    }
    if (how != end::meanwhile)
      caf::anon_send_exit(other, caf::exit_reason::kill);
    other = nullptr;
    cluster.run_for(how == end::meanwhile ? 61s : 1s);
    CHECK(is_free() == (how != end::of_memory_first));
    CHECK(cluster.end() == "");
  }
}

TEST_CASE("restarts: a node that does not come back is lost, and the others go on") {
  simulated_nodes cluster{restartable(7, false)};
  all_reduce_trial trial{cluster, {.in_place = true}};
  REQUIRE(trial.launch() == "");
  for (int i = 0; i < 40; ++i)
    cluster.step();
  cluster.kill(0);
  cluster.kill(2);
  cluster.run_for(20ms);
  cluster.restart_coordinator();
  const auto status = cluster.wait(trial.comm.commid());
  CHECK(status.error() == "");
  CHECK(status.devices_size() == 2);
  CHECK(contains(status.asyncerror(), "was lost"));
  std::vector<uint32_t> there;
  for (uint32_t rank = 0; rank < 4; ++rank)
    if (cluster.is_there(trial.device(rank)))
      there.push_back(rank);
  CHECK(trial.judge(there, there) == "");
}

TEST_CASE(
  "restarts: a failure that the host has not read is not lost with the coordinator, and one of before is over") {
  auto options = restartable(5, false);
  options.devices = {1, 1, 1};
  simulated_nodes cluster{options};
  const auto comm = cluster.init(3);
  const auto broadcast = [&](uint32_t ranks, uint32_t root, uint64_t offset) {
    return collective_trial{
      cluster,
      {.kind = proto::BROADCAST, .algorithm = "auto", .ranks = ranks, .count = 1000, .root = root},
      comm,
      offset};
  };
  auto of_lost_root = broadcast(3, 2, 0);
  auto of_others = broadcast(3, 0, of_lost_root.bytes());
  REQUIRE(of_lost_root.launch() == "");
  REQUIRE(of_others.launch() == "");
  cluster.kill(*cluster.host_index_of(of_lost_root.device(2)));
  cluster.run_for(3s);
  cluster.restart_coordinator();
  const auto status = cluster.wait(comm.commid());
  CHECK(status.status() == gpu_sim::FAILED);
  CHECK_MESSAGE(contains(status.error(), "operation #1 has failed"), status.error());

  REQUIRE(broadcast(2, 1, 0).launch() == "");
  CHECK(cluster.wait(comm.commid()).status() == gpu_sim::SUCCESS);
  cluster.restart_coordinator();
  CHECK(cluster.wait(comm.commid()).status() == gpu_sim::SUCCESS);
  CHECK(cluster.end() == "");
}
