// What goes wrong with simulated nodes, what can be seen in them, and how they are cleared away.
#include "tests/support/actor_state.hpp"
#include "tests/support/nodes/simulated_nodes.hpp"

#include <caf/send.hpp>

#include <fmt/format.h>
#include <utility>

namespace ringmaster::test {

simulated_process& simulated_nodes::pause(size_t process) {
  processes_[process]->pause(now_);
  return *processes_[process];
}

void simulated_nodes::resume(simulated_process& process) {
  process.resume(now_);
}

void simulated_nodes::kill(simulated_process& process) {
  process.state = simulated_process::condition::ended;
  network_.gone(process, now_);
  if (options.standby)
    return; // what was under way to etcd arrives there
  std::vector<uint64_t> reach_it;
  for (auto& [number, x] : unsure_)
    if (x.process == &process && random() % 2 == 0)
      reach_it.push_back(number);
  for (auto number : reach_it)
    store_batch(number);
  std::erase_if(unsure_, [&](auto& x) { return x.second.process == &process; });
}

void simulated_nodes::join_again(size_t process) {
  kill(process);
  former_nodes_.push_back(std::exchange(nodes_[process], {}));
  former_.push_back(std::exchange(processes_[process], std::make_unique<simulated_process>(name_of(process))));
  processes_[process]->see(now_);
  start_node(process);
}

void simulated_nodes::restart_coordinator() {
  kill(0);
  former_served_.emplace_back(std::exchange(served_, {}), std::exchange(journal_handle, {}));
  former_.push_back(std::exchange(processes_[0], std::make_unique<simulated_process>(name_of(0))));
  processes_[0]->see(now_);
  start_coordinator();
}

void simulated_nodes::mend() {
  std::erase_if(agenda_, [](auto& x) { return x.second.of_test; });
  if (options.restarts && processes_[0]->state == simulated_process::condition::ended)
    restart_coordinator();
  for (auto& x : processes_)
    resume(*x);
  network_.heal_all();
  for (auto& x : leaders_)
    x.cut_until = now_;
}

void simulated_nodes::fault_later(uint64_t device, const proto::FaultRequest& fault) {
  gpu_sim::DeviceId id;
  id.set_value(device);
  caf::anon_send(host, std::move(id), fault);
}

void simulated_nodes::kill_device(uint64_t device) {
  auto its = host_of(device);
  if (its == nullptr)
    return;                                                                       // its process has ended or is paused
  if (auto stream = its->sys.registry().get(known(device)->handle.stream->id()))  // else it has died already
    caf::anon_send(caf::actor_cast<stream_actor>(stream), proto::FaultRequest{}); // a kill
}

const known_device* simulated_nodes::known(uint64_t device) {
  return state_of<coordinator_state>(served_).devices.find(device_id{device});
}

simulated_process* simulated_nodes::host_of(uint64_t device) {
  auto index = host_index_of(device);
  return index ? processes_[*index].get() : nullptr;
}

std::optional<size_t> simulated_nodes::host_index_of(uint64_t device) {
  auto its = known(device);
  if (its == nullptr)
    return std::nullopt;
  auto its_node = its->handle.device->node();
  for (size_t index = 0; index < processes_.size(); ++index)
    if (processes_[index]->sys.node() == its_node)
      return processes_[index]->runs() ? std::optional{index} : std::nullopt;
  return std::nullopt;
}

/// The actor behind a handle of the coordinator's.
caf::strong_actor_ptr simulated_nodes::in_its_process(uint64_t device, const caf::strong_actor_ptr& proxy) {
  auto its = host_of(device);
  REQUIRE(its != nullptr);
  auto result = its->sys.registry().get(proxy->id());
  REQUIRE(result != nullptr);
  return result;
}

device_state& simulated_nodes::device_at(uint64_t device) {
  return state_of<device_state>(caf::actor_cast<device_actor>(in_its_process(device, known(device)->handle.device)));
}

stream_state& simulated_nodes::stream_at(uint64_t device) {
  return state_of<stream_state>(caf::actor_cast<stream_actor>(in_its_process(device, known(device)->handle.stream)));
}

std::string simulated_nodes::end() {
  if (std::exchange(ended_, true))
    return {};
  agenda_.clear();
  for (auto& x : former_)
    processes_.push_back(std::move(x));
  for (auto& x : processes_) {
    network_.gone(*x, now_);
    x->state = simulated_process::condition::running;
  }
  nodes_.insert(nodes_.end(), former_nodes_.begin(), former_nodes_.end());
  former_nodes_.clear();
  for (auto& x : nodes_)
    if (x)
      caf::anon_send_exit(x, caf::exit_reason::user_shutdown);
  former_served_.emplace_back(std::exchange(served_, {}), std::exchange(journal_handle, {}));
  for (auto& [coordinator, its_journal] : former_served_) {
    caf::anon_send_exit(coordinator, caf::exit_reason::kill);
    caf::anon_send_exit(its_journal, caf::exit_reason::kill);
  }
  former_served_.clear();
  nodes_.assign(nodes_.size(), {});
  host = nullptr;
  journal_handle = nullptr;
  client_.reset();
  auto left = [this] {
    std::string result;
    for (auto& x : processes_)
      if (x->actors() > 0)
        result += fmt::format("{} actors of {} have not ended; ", x->actors(), x->name);
    return result;
  };
  auto until = now_ + std::chrono::minutes{1};
  while (now_ < until && !left().empty() && step())
    ;
  return left();
}

} // namespace ringmaster::test
