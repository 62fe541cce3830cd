#include "tests/support/nodes/simulated_process.hpp"

#include "actors/hosts/connection_watch.hpp"
#include "actors/scheduling/awake_clock.hpp"

#include <caf/io/basp_broker.hpp>

#include <algorithm>
#include <utility>

namespace ringmaster::test {

simulated_process::config::config() {
  load<caf::io::middleman>();
  set("middleman.network-backend", caf::atom("testing"));
  set("middleman.manual-multiplexing", true);
  set("middleman.attach-utility-actors", true); // no threads
  set("middleman.workers", size_t{0});          // what comes is taken apart where it comes
  set("middleman.heartbeat-interval", caf::timespan{std::chrono::milliseconds{500}});
  set("middleman.connection-timeout", caf::timespan{std::chrono::seconds{20}});
}

simulated_process::simulated_process(std::string its_name)
  : name(std::move(its_name)), sys(cfg_), scheduler(dynamic_cast<caf::scheduler::test_coordinator&>(sys.scheduler())),
    network(dynamic_cast<caf::io::network::test_multiplexer&>(sys.middleman().backend())),
    protocol(sys.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"))) {
  connection_watch::start(sys.middleman());
  serve_network();
}

simulated_process::~simulated_process() {
  serve_network();
}

void simulated_process::pause(time_point now) {
  if (!runs())
    return;
  state = condition::paused;
  paused_at_ = now;
}

void simulated_process::resume(time_point now) {
  if (state != condition::paused)
    return;
  state = condition::running;
  paused_for_ += std::max<time_point::duration>(now - paused_at_ - awake_clock::pause_min, time_point::duration{0});
}

void simulated_process::handle(size_t which, time_point now) {
  see(now);
  std::swap(scheduler.jobs.front(), scheduler.jobs[which]);
  scheduler.run_once();
  serve_network();
}

std::optional<simulated_process::time_point> simulated_process::next_timeout() const {
  auto& schedule = scheduler.clock().schedule();
  return schedule.empty() ? std::nullopt : std::optional{schedule.begin()->first + paused_for_};
}

void simulated_process::wake(time_point now) {
  auto next = next_timeout();
  if (!next || *next > now)
    return;
  see(now);
  scheduler.clock().trigger_expired_timeouts();
  serve_network();
}

} // namespace ringmaster::test
