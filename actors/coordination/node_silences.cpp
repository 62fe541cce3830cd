#include "actors/coordination/node_silences.hpp"

#include "actors/coordination/coordinator.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace ringmaster {

namespace {

/// A node takes a round trip, and then the answer to the client takes another.
constexpr auto node_limit = std::chrono::milliseconds{40}, watch_limit = std::chrono::milliseconds{20};

} // namespace

void node_silences::find(node_id id, std::function<void(uint64_t silent_ns)> then) {
  auto& nodes = coordinator_.devices.nodes();
  auto known = nodes.find(id);
  auto node = known == nodes.end() ? node_actor{} : caf::actor_cast<node_actor>(known->second.handle);
  if (!node)
    return then(0);
  auto asked_ns = coordinator_.now_ns();
  coordinator_.self->request(node, node_limit, proto::AliveRequest{})
    .then([then](const proto::AliveResponse&) { then(0); },
          [this, id, asked_ns, then](const caf::error& problem) {
            auto still = coordinator_.devices.nodes().find(id);
            if (problem != caf::sec::request_timeout || still == coordinator_.devices.nodes().end())
              return then(0);
            note(id, asked_ns);
            ensure(since_.contains(id), "a node that was found silent is noted");
            const auto now = coordinator_.now_ns();
            auto silent_ns = std::max(now, since_.at(id)) - since_.at(id);
            if (!coordinator_.options.silence_watch)
              return then(silent_ns);
            // It may have been silent before it was asked: the heartbeats of its process show that.
            coordinator_.self->request(coordinator_.options.silence_watch, watch_limit, still->second.handle->node())
              .then([then, silent_ns](uint64_t since_word) { then(std::max(silent_ns, since_word)); },
                    [then, silent_ns](const caf::error&) { then(silent_ns); });
          });
}

void node_silences::note(node_id id, uint64_t since_ns) {
  auto node = coordinator_.devices.nodes().find(id);
  if (node == coordinator_.devices.nodes().end() || !since_.try_emplace(id, since_ns).second)
    return; // or its answer is awaited already
  auto answered = [this, id] { since_.erase(id); };
  coordinator_.self->request(caf::actor_cast<node_actor>(node->second.handle), caf::infinite, proto::AliveRequest{})
    .then([answered](const proto::AliveResponse&) { answered(); }, [answered](const caf::error&) { answered(); });
}

void node_silences::explain(node_id id, const caf::error& problem, std::function<void(const caf::error&)> then) {
  find(id, [problem, then](uint64_t silent_ns) {
    if (silent_ns == 0)
      return then(problem);
    then(make_error(code_of(problem), fmt::format("{}; its process has been silent for {}: it is busy, stopped or "
                                                  "unreachable",
                                                  render(problem), duration_text(silent_ns))));
  });
}

} // namespace ringmaster
