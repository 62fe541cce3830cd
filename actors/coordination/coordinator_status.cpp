// The COORDINATOR says what everybody is doing, and who does not answer, without waiting for anybody.
#include "actors/coordination/coordinator_requests.hpp"
#include "actors/coordination/gathering.hpp"
#include "runtime/text/quantity_text.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace ringmaster {

namespace {

using status_gathering = std::shared_ptr<gathering<proto::ClusterStatus>>;

/// Communicators are of this process and answer from memory; a node takes a round trip, and then its answer to whoever
/// asked takes another.
constexpr auto communicator_limit = std::chrono::milliseconds{60}, node_limit = std::chrono::milliseconds{40},
               watch_limit = std::chrono::milliseconds{20};

void ask_communicator(coordinator_state& state, communicator_id id, const known_communicator& known,
                      const status_gathering& all) {
  auto index = all->answer.communicators_size();
  auto& about = *all->answer.add_communicators();
  describe(about, id, known);
  for (auto member : state.devices.members_of(id))
    about.add_ranks()->set_device_id(member.value);
  auto now = all->answer.time_ns();
  about.set_operations_met(known.operations_met);
  if (known.operations_met > 0)
    about.set_met_quiet_ns(std::max(now, known.met_ended_ns + 1) - known.met_ended_ns);
  ++all->waiting;
  ask_communicator_then<proto::CommunicatorStatus>(
    state, id, proto::CommunicatorStatusRequest{}, communicator_limit,
    [all, index](proto::CommunicatorStatus& x) {
      auto& told = *all->answer.mutable_communicators(index);
      x.set_outlives_client(told.outlives_client()); // these four it does not know
      x.set_name(told.name());
      x.set_operations_met(told.operations_met());
      x.set_met_quiet_ns(told.met_quiet_ns());
      told = std::move(x);
      all->told();
    },
    [all, index](const caf::error& problem) {
      all->answer.mutable_communicators(index)->set_silent(render(problem));
      all->told();
    });
}

void ask_node(coordinator_state& state, node_id id, const status_gathering& all, int index) {
  ++all->waiting;
  state.find_silence(id, [all, index](uint64_t silent_ns) {
    if (silent_ns > 0)
      all->answer.mutable_cluster()->mutable_nodes(index)->set_silent_ns(silent_ns);
    all->told();
  });
}

} // namespace

void coordinator_state::find_silence(node_id id, std::function<void(uint64_t silent_ns)> then) {
  auto known = devices.nodes().find(id);
  auto node = known == devices.nodes().end() ? node_actor{} : caf::actor_cast<node_actor>(known->second.handle);
  if (!node)
    return then(0);
  auto asked_ns = now_ns();
  self->request(node, node_limit, proto::AliveRequest{})
    .then([then](const proto::AliveResponse&) { then(0); },
          [this, id, asked_ns, then](const caf::error& problem) {
            auto still = devices.nodes().find(id);
            if (problem != caf::sec::request_timeout || still == devices.nodes().end())
              return then(0);
            note_silence(id, asked_ns);
            auto silent_ns = now_ns() - silent_since.at(id);
            if (!options.silence_watch)
              return then(silent_ns);
            // It may have been silent before it was asked: its process's heartbeats tell.
            self->request(options.silence_watch, watch_limit, still->second.handle->node())
              .then([then, silent_ns](uint64_t since_word) { then(std::max(silent_ns, since_word)); },
                    [then, silent_ns](const caf::error&) { then(silent_ns); });
          });
}

void coordinator_state::note_silence(node_id id, uint64_t since_ns) {
  auto node = devices.nodes().find(id);
  if (node == devices.nodes().end() || !silent_since.try_emplace(id, since_ns).second)
    return; // or its answer is waited for
  auto answered = [this, id] { silent_since.erase(id); };
  self->request(caf::actor_cast<node_actor>(node->second.handle), caf::infinite, proto::AliveRequest{})
    .then([answered](const proto::AliveResponse&) { answered(); }, [answered](const caf::error&) { answered(); });
}

void coordinator_state::say_silence(node_id id, const caf::error& problem,
                                    std::function<void(const caf::error&)> then) {
  find_silence(id, [problem, then](uint64_t silent_ns) {
    if (silent_ns == 0)
      return then(problem);
    then(make_error(code_of(problem), fmt::format("{}; its process has been silent for {}: it is busy or stands still, "
                                                  "or the way there does",
                                                  render(problem), duration_text(silent_ns))));
  });
}

caf::result<proto::ClusterStatus> coordinator_state::cluster_status() {
  auto all = std::make_shared<gathering<proto::ClusterStatus>>();
  all->promise = self->make_response_promise<proto::ClusterStatus>();
  auto promise = all->promise;
  all->answer.set_time_ns(now_ns());
  *all->answer.mutable_cluster() = info();
  for (auto& gone : latest_gone_)
    *all->answer.mutable_cluster()->add_gone() = gone;
  for (auto& [id, known] : communicators.alive())
    ask_communicator(*this, id, known, all);
  int index = 0; // as `info` tells them
  for (auto& [id, known] : devices.nodes())
    ask_node(*this, id, all, index++);
  all->told();
  return promise;
}

} // namespace ringmaster
