// The COORDINATOR says what everybody is doing, and who does not answer, without waiting for anybody.
#include "actors/coordination/coordinator_requests.hpp"
#include "actors/coordination/gathering.hpp"

#include <algorithm>

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
      x.set_outlives_client(told.outlives_client()); // these three it does not know
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

/// A node that does not answer may have been silent before it was asked: its process's heartbeats tell.
void count_from_last_word(coordinator_state& state, node_id id, const status_gathering& all, int index) {
  if (!state.options.silence_watch)
    return;
  ++all->waiting;
  state.self->request(state.options.silence_watch, watch_limit, state.devices.nodes().at(id).handle->node())
    .then(
      [all, index](uint64_t silent_ns) {
        auto& node = *all->answer.mutable_cluster()->mutable_nodes(index);
        node.set_silent_ns(std::max(node.silent_ns(), silent_ns));
        all->told();
      },
      [all](const caf::error&) { all->told(); });
}

void ask_node(coordinator_state& state, node_id id, const known_node& known, const status_gathering& all, int index) {
  auto node = caf::actor_cast<node_actor>(known.handle);
  if (!node)
    return;
  ++all->waiting;
  auto asked_ns = all->answer.time_ns();
  state.self->request(node, node_limit, proto::AliveRequest{})
    .then([all](const proto::AliveResponse&) { all->told(); },
          [&state, all, id, index, asked_ns](const caf::error& problem) {
            if (problem == caf::sec::request_timeout && state.devices.nodes().count(id) != 0) {
              state.note_silence(id, asked_ns);
              auto since = state.silent_since.at(id);
              all->answer.mutable_cluster()->mutable_nodes(index)->set_silent_ns(state.now_ns() - since);
              count_from_last_word(state, id, all, index);
            }
            all->told();
          });
}

} // namespace

void coordinator_state::note_silence(node_id id, uint64_t since_ns) {
  auto node = devices.nodes().find(id);
  if (node == devices.nodes().end() || !silent_since.try_emplace(id, since_ns).second)
    return; // or its answer is waited for
  auto answered = [this, id] { silent_since.erase(id); };
  self->request(caf::actor_cast<node_actor>(node->second.handle), caf::infinite, proto::AliveRequest{})
    .then([answered](const proto::AliveResponse&) { answered(); }, [answered](const caf::error&) { answered(); });
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
    ask_node(*this, id, known, all, index++);
  all->told();
  return promise;
}

} // namespace ringmaster
