// A real coordinator, one client that sends far more than it waits for, and another one beside it.
#include "actors/configuration/configuration.hpp"
#include "client/client.hpp"
#include "client/cluster.hpp"
#include "tests/faults/started_coordinator.hpp"

#include <caf/all.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <thread>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

/// A process as the coordinator sees it.
struct outsider {
  explicit outsider(const std::string& where) {
    REQUIRE_FALSE(settings.read(std::vector<std::string>{}, std::nullopt));
    system.emplace(settings);
    auto found = connect(*system, where, 10s);
    REQUIRE(found);
    coordinator = *found;
  }

  configuration settings;
  std::optional<caf::actor_system> system;
  coordinator_actor coordinator;
};

struct outcomes {
  std::atomic<int> answered{0}, refused{0}, lost{0};

  int all() const { return answered + refused + lost; }
};

/// Asks so often at once.
caf::behavior flood(caf::event_based_actor* self, const coordinator_actor& whom, int times,
                    const std::shared_ptr<outcomes>& came) {
  for (int i = 0; i < times; ++i)
    self->request(whom, caf::infinite, proto::ClusterInfoRequest{})
      .then([came](const proto::ClusterInfo&) { ++came->answered; },
            [came](const caf::error& why) { ++(why == errc::too_many ? came->refused : came->lost); });
  return {[](atom::flush) {}};
}

} // namespace

TEST_CASE("floods: a client that sends 50,000 requests at once is answered each, and another one works meanwhile") {
  constexpr int times = 50'000;
  started_coordinator started;
  outsider busy{started.where}, modest{started.where};
  client other{*modest.system, modest.coordinator};
  REQUIRE(other.info());
  auto came = std::make_shared<outcomes>();
  auto flooder = busy.system->spawn(flood, busy.coordinator, times, came);
  using clock = std::chrono::steady_clock;
  clock::duration slowest{0};
  int calls_meanwhile = 0;
  const auto flood_began = clock::now();
  for (auto until = flood_began + 120s; came->all() < times && clock::now() < until;) {
    const auto began = clock::now();
    REQUIRE(other.info());
    slowest = std::max(slowest, clock::now() - began);
    ++calls_meanwhile;
    std::this_thread::sleep_for(5ms);
  }
  const auto flood_took = clock::now() - flood_began;
  CHECK(came->all() == times);
  CHECK(came->lost == 0);
  CHECK(came->answered > 0);
  CHECK(calls_meanwhile > 20);
  CHECK(slowest < 1s);
  CHECK(slowest * 5 < flood_took); // a coordinator that serves in order of arrival answers after most of the flood
  caf::anon_send_exit(flooder, caf::exit_reason::user_shutdown);
  REQUIRE(::kill(started.pid(), SIGTERM) == 0);
  CHECK(started.program.finish() == 0);
}
