#include "actors/coordination/indirect_probe.hpp"

#include "actors/coordination/coordinator.hpp"
#include "runtime/invariants/ensure.hpp"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

namespace ringmaster {

namespace {

constexpr size_t asked_max = 3;
constexpr auto probe_limit = std::chrono::milliseconds{100};

/// One probe: the nodes that have not answered yet, and whom to tell.
struct open_probe {
  size_t to_answer = 0;
  std::function<void(bool)> then; ///< Empty once it was called.

  void answer(bool lives) {
    ensure(to_answer > 0, "each node that is asked answers once");
    --to_answer;
    if (then && (lives || to_answer == 0))
      std::exchange(then, nullptr)(lives);
  }
};

} // namespace

void probe_by_others(coordinator_state& coordinator, const std::string& node, std::function<void(bool)> then) {
  std::vector<node_actor> others;
  for (auto& [id, other] : coordinator.devices.nodes())
    if (other.about.name() != node && other.handle && others.size() < asked_max)
      others.push_back(caf::actor_cast<node_actor>(other.handle));
  if (others.empty() || node.empty())
    return then(false);
  auto probe = std::make_shared<open_probe>(open_probe{others.size(), std::move(then)});
  proto::AliveRequest request;
  request.set_peer(node);
  for (auto& other : others)
    coordinator.self->request(other, probe_limit, request)
      .then([probe](const proto::AliveResponse& x) { probe->answer(x.peer_lives()); },
            [probe](const caf::error&) { probe->answer(false); });
}

} // namespace ringmaster
