#include "actors/coordination/liveness_watch.hpp"

#include "actors/communicators/audience.hpp"
#include "actors/coordination/coordinator.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/logging/log.hpp"

#include <chrono>
#include <map>
#include <memory>

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

void liveness_watch::start() {
  if (coordinator_.options.idle_interval.count() == 0)
    return;
  auto suspect = coordinator_.options.communicators.suspect;
  suspect.interval = std::max<caf::timespan>(suspect.interval, coordinator_.options.idle_interval);
  watch_.emplace(suspect, coordinator_.options.communicators.operation_limit);
  wait(coordinator_.options.idle_interval);
}

void liveness_watch::wait(caf::timespan time) {
  watch_->expect_look(coordinator_.self->clock().now() + time);
  timer_ = coordinator_.next_number();
  coordinator_.self->delayed_send<caf::message_priority::high>(coordinator_.self, time, atom::expire_v, timer_);
}

bool liveness_watch::tick(uint64_t number) {
  if (!watch_ || number != timer_)
    return false;
  const bool all_have_answered = owing_.empty();
  if (coordinator_.recovery.is_done()) {
    look();
    ask();
  }
  wait(all_have_answered ? coordinator_.options.idle_interval
                         : std::min<caf::timespan>(coordinator_.options.communicators.suspect.interval,
                                                   coordinator_.options.idle_interval));
  return true;
}

void liveness_watch::look() {
  const auto found = watch_->look({watched_.begin(), watched_.end()}, coordinator_.self->clock().now());
  if (!found.overload.empty())
    log_info({}, "the cluster: {}", found.overload);
  std::map<std::string, std::vector<std::pair<device_id, proto::Suspicion>>> silent;
  for (auto& [device, evidence] : found.suspects) {
    const auto* known = coordinator_.devices.find(device);
    if (evidence.cause() == proto::Suspicion::PROCESS_SILENT && known != nullptr)
      silent[coordinator_.devices.name_of(known->node)].emplace_back(device, evidence);
    else
      coordinator_.members.fence(device, {text_of(evidence), "suspicion", coordinator_.now_ns(), evidence});
  }
  for (auto& [node, suspects] : silent)
    doubt(node, std::move(suspects));
}

void liveness_watch::doubt(const std::string& node, std::vector<std::pair<device_id, proto::Suspicion>> suspects) {
  if (!probed_.insert(node).second)
    return;
  probe_by_others(coordinator_, node, [this, node, suspects = std::move(suspects)](bool lives) {
    probed_.erase(node);
    const auto limit = coordinator_.options.communicators.suspect.late_after;
    for (auto& [device, evidence] : suspects) {
      if (!watched_.contains(device)
          || watch_->liveness().known(device, coordinator_.self->clock().now()).silent <= limit)
        continue; // it has answered, or is gone
      device_end how{text_of(evidence), "suspicion", coordinator_.now_ns(), evidence};
      how.lives = lives;
      coordinator_.members.fence(device, how);
    }
  });
}

void liveness_watch::ask() {
  audience relays{coordinator_.self};
  for (auto& [id, device] : coordinator_.devices.devices()) {
    if (watched_.insert(id).second)
      watch_->add(id, device.handle);
    relays.add(id, device.handle, true);
  }
  owing_ = watched_;
  if (watched_.empty())
    return;
  latest_request_ = watch_->asked({watched_.begin(), watched_.end()}, coordinator_.self->clock().now(),
                                  coordinator_.now_ns());
  proto::ProgressRequest request;
  request.set_number(latest_request_);
  relays.tell(request, caf::message_priority::high);
}

void liveness_watch::on_report(const proto::ProgressReport& x) {
  const auto& relay = coordinator_.self->current_sender();
  if (!watch_ || !relay)
    return;                            // the connection to its process has ended meanwhile
  constexpr bool has_our_clock = true; // or communicators compare it
  watch_->on_node_report(relay->address(), x, has_our_clock, coordinator_.self->clock().now(), coordinator_.now_ns());
  for (auto& device : x.devices())
    if (device.number() == latest_request_)
      owing_.erase(device_id{device.device_id()});
}

void liveness_watch::on_progress(const proto::Progress& x) {
  if (!watch_)
    return;
  watch_->on_progress(x, coordinator_.self->clock().now());
  if (x.number() == latest_request_)
    owing_.erase(device_id{x.device_id()});
}

void liveness_watch::gone(device_id device, const device_handle& handle) {
  if (!watch_ || watched_.erase(device) == 0)
    return;
  watch_->remove(device, handle);
  owing_.erase(device);
}

} // namespace ringmaster
