#include "runtime/coordination/drain_desk.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringmaster {

void drain_desk::begin(node_id node, number who) {
  ensure(devices_.nodes().contains(node), "a node that is drained is in the cluster");
  ensure(!drained_.contains(node), "a node that has exited is not drained again");
  devices_.set_draining(node, true);
  const bool is_new = drains_[node].waiting.insert(who).second;
  ensure(is_new, "each request to drain has a number of its own");
}

std::vector<node_id> drain_desk::nodes() const {
  std::vector<node_id> result;
  for (auto& x : drains_)
    result.push_back(x.first);
  return result;
}

std::map<communicator_id, std::vector<device_id>> drain_desk::communicators_of(node_id node) const {
  std::map<communicator_id, std::vector<device_id>> result;
  for (auto& [id, device] : devices_.devices())
    if (device.node == node)
      for (auto communicator : device.communicators)
        result[communicator].push_back(id);
  return result;
}

drain_desk::step drain_desk::next(node_id node) {
  ensure(drains_.contains(node), "a drain that goes on was started");
  step result;
  auto& x = drains_.at(node);
  auto used = communicators_of(node);
  if (used.empty())
    result.end_node = !std::exchange(x.asked_to_exit, true);
  for (auto& [id, devices] : used) {
    auto known = communicators_.find(id);
    bool would_end = known == nullptr || known->policy == proto::ABORT; // then its own end is waited for
    if (!would_end && x.asked.insert(id).second)
      result.ask[id] = devices;
  }
  return result;
}

bool drain_desk::replaces(communicator_id communicator) const {
  auto known = communicators_.find(communicator);
  return known != nullptr && known->policy == proto::REPLACE;
}

void drain_desk::answered(node_id node, communicator_id communicator, const std::vector<device_id>& devices,
                          epoch_number epoch, const caf::error& problem) {
  if (!problem)
    for (auto device : devices)
      devices_.leave(device, communicator);
  auto i = drains_.find(node);
  if (i == drains_.end())
    return; // the node has exited, or its drain was cancelled
  auto& x = i->second;
  x.asked.erase(communicator);
  x.problems.erase(communicator);
  if (problem)
    x.problems[communicator] = problem;
  else
    x.done.push_back(fmt::format("communicator {} goes on without device 0x{:x}, in epoch {}{}", communicator.value,
                                 fmt::join(devices, " 0x"), epoch, replaces(communicator) ? ", with spares" : ""));
}

bool drain_desk::is_given(node_id node) const {
  auto i = drains_.find(node);
  return drained_.contains(node) || (i != drains_.end() && i->second.asked_to_exit);
}

std::optional<drain_desk::ending> drain_desk::gone(node_id node) {
  auto found = drains_.extract(node);
  if (!found)
    return std::nullopt;
  auto& x = found.mapped();
  if (x.asked_to_exit)
    drained_.insert(node);
  ensure(x.asked_to_exit || !drained_.contains(node), "a node exits once");
  return ending{{x.waiting.begin(), x.waiting.end()}, std::move(x.done), x.asked_to_exit};
}

std::string drain_desk::waits_for(node_id node, const drain& x) const {
  if (x.asked_to_exit)
    return "it was asked to exit, and has not";
  std::vector<std::string> result;
  for (auto& [id, devices] : communicators_of(node)) {
    auto known = communicators_.find(id);
    auto problem = x.problems.find(id);
    auto why = problem != x.problems.end()                         ? render(problem->second)
               : known != nullptr && known->policy == proto::ABORT ? "its policy is \"abort\", so it must end first"
                                                                   : "its operations have not finished";
    result.push_back(fmt::format("communicator {} has its device 0x{:x}: {}", id.value, fmt::join(devices, " 0x"),
                                 why));
  }
  return fmt::format("{}", fmt::join(result, "; "));
}

std::optional<std::string> drain_desk::expired(number who) {
  for (auto i = drains_.begin(); i != drains_.end(); ++i) {
    auto& [node, x] = *i;
    if (x.waiting.erase(who) == 0)
      continue;
    auto result = waits_for(node, x);
    if (x.waiting.empty() && !x.asked_to_exit) {
      devices_.set_draining(node, false);
      drains_.erase(i);
      result += "; its devices are available for new communicators again";
    }
    return result;
  }
  return std::nullopt;
}

void recent_departures::add(proto::ClusterInfo::Gone what, uint64_t when_ns) {
  what.set_time_ns(when_ns);
  latest_.push_back(std::move(what));
  if (latest_.size() > kept_max)
    latest_.pop_front();
  ensure(latest_.size() <= kept_max, "no more departures are kept than the limit");
}

std::string recent_departures::name_of(node_id node) const {
  for (auto& x : latest_)
    if (x.what() == proto::ClusterInfo::Gone::NODE && x.id() == node.value)
      return x.name();
  return {};
}

void recent_departures::write_to(proto::ClusterInfo& info) const {
  for (auto& x : latest_)
    *info.add_gone() = x;
}

} // namespace ringmaster
