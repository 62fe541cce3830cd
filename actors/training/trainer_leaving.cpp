// How ranks leave a TRAINER's run in good order: behind a step, when others have what they have.
#include "actors/training/trainer.hpp"
#include "runtime/memory/mapped_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::training {

void trainer_state::leaving(const rank_leaving& x) {
  is_to_leave(x.device, "its process was told to end");
}

void trainer_state::is_to_leave(device_id device, std::string_view why) {
  const auto found = std::ranges::find(members_, device, &member::device);
  if (found == members_.end() || now_ == phase::over || ending_ || std::exchange(found->leaves, true))
    return;
  settings_.watcher.note(fmt::format("{} is to leave, behind step {}: {}", ringmaster::text_of(device), step_, why));
}

void trainer_state::look_for_drains() {
  if (!settings_.starts_ranks) // processes that are ranks are not drained: they are told to end
    return;
  auto look = [this](const proto::ClusterInfo& x) {
    std::map<uint64_t, std::string> drained;
    for (auto& node : x.nodes())
      if (node.draining())
        drained[node.node_id()] = node.name();
    std::set<device_id> leaving;
    for (auto& device : x.devices())
      if (auto node = drained.find(device.node_id()); node != drained.end()) {
        const device_id id{device.metadata().deviceid().value()};
        leaving.insert(id);
        is_to_leave(id, fmt::format("node {} is drained", node->second));
      }
    if (now_ == phase::gathering || now_ == phase::stepping)
      for (auto& each : members_)
        each.leaves = each.leaves && leaving.contains(each.device); // a drain may be given up
  };
  self->request(settings_.coordinator, settings_.operation_limit, proto::ClusterInfoRequest{})
    .then(look, [](const caf::error&) {}); // it is asked again
}

bool trainer_state::hand_over() {
  if (std::ranges::none_of(members_, &member::leaves))
    return false;
  if (step_ == 0 || parts(false).whole()) {
    let_leave(caf::none);
    return false;
  }
  if (!parts().whole()) { // find_model says what becomes of that
    let_leave(make_error(errc::device_lost, "what others had is lost"));
    return false;
  }
  handing_over_ = true;
  news_ = self->clock().now();
  take_image([this, attempt = attempt_](const caf::expected<model_image>& x) {
    if (attempt != attempt_ || now_ != phase::recovering)
      return;
    handing_over_ = false;
    let_leave(x ? caf::error{} : x.error());
    go_on(attempt);
  });
  return true;
}

void trainer_state::hand_over_anew() {
  if (!std::exchange(handing_over_, false))
    return;
  ++attempt_; // what was asked for is not awaited
  self->send(self, atom::resume_v, attempt_);
}

void trainer_state::let_leave(const caf::error& problem) {
  for (auto& each : members_) {
    if (!each.leaves)
      continue;
    settings_.watcher.note(problem
                             ? fmt::format("{} has left, and what it had could not be taken over: {}",
                                           ringmaster::text_of(each.device), render(problem))
                             : fmt::format("{} has left; what it had is taken over", ringmaster::text_of(each.device)));
    if (!settings_.starts_ranks) // else nobody gets it while it is drained, and it may come back
      lost_.insert(each.device);
    if (each.handle)
      let_go(each.handle, [] {});
  }
  std::erase_if(members_, &member::leaves);
}

} // namespace ringmaster::training
