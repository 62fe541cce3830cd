#pragma once

#include "actors/hosts/coordinator_proxy.hpp"
#include "actors/hosts/node.hpp"
#include "tests/support/nodes/simulated_network.hpp"
#include "tests/support/nodes/simulated_store.hpp"
#include "tests/support/simulated_host.hpp"

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace ringmaster::test {

struct nodes_options {
  uint64_t seed = 1;
  std::vector<uint32_t> devices = {2, 2}; ///< Of each node.
  uint64_t memory_bytes = 1u << 16;
  uint64_t slice_bytes = 64; ///< Small, so that faults fall between the slices of a block. Of a chunk, too.
  bool one_host = false;     ///< Processes map each other's memory, and operations may be joint ones.
  proto::FailurePolicy policy = proto::SHRINK;
  simulated_network::options network;
  caf::timespan turn = std::chrono::microseconds{1}; ///< That handling a message takes.
  bool restarts = false; ///< The coordinator keeps a store and may be restarted; the client is in a process of its own.
  /// As `restarts`, with the store in etcd, and another coordinator that leads as soon as the present one's lease ends.
  bool standby = false;
  bool synced = true;             ///< Whether what is stored on the disk is synced; see journal.sync.
  caf::timespan disk_time_max{0}; ///< Storing something takes up to so long.
  caf::timespan idle_interval{0}; ///< Devices are asked also while nothing is in flight; 0: they are not.
  uint64_t eager_bytes = 0; ///< A block of at most this size travels with its offer, to a process that cannot map it.
};

/// A cluster of several processes in one thread and in virtual time: process 0 has journal, coordinator and the test's
/// client, each other one a node as `ringmaster node` hosts it, with its relay, its supervisor and devices. Whose
/// message is next, and how long it is on its way, is drawn from the seed, so the same seed has the same history.
///
/// All processes have one clock. It goes on by a little with each message that is handled, so that timeouts fire and
/// messages arrive between others; where there is nothing to handle it goes to what is due next.
class simulated_nodes : public simulated_host {
public:
  using time_point = simulated_process::time_point;

  /// Runs until all devices have joined and all nodes are connected to each other.
  explicit simulated_nodes(const nodes_options& opts);
  ~simulated_nodes() override;

  bool step() override;
  caf::scoped_actor& client() override { return *client_; }

  time_point now() const { return now_; }
  uint64_t now_ns() const { return static_cast<uint64_t>(now_.time_since_epoch().count()); }
  void run_for(caf::timespan time);
  /// Has something done when so much time has passed.
  void later(caf::timespan time, std::function<void()> what);

  caf::actor_system& client_system() { return client_process().sys; }

  // What goes wrong between processes and with them: 0 is the coordinator's, 1 the first node's.
  // The coordinator is not the same after its successor was elected: what is given back stays the one that was.
  simulated_process& pause(size_t process);
  void resume(size_t process) { resume(*processes_[process]); }
  void resume(simulated_process& process);
  void kill(size_t process) { kill(*processes_[process]); }
  void kill(simulated_process& process);
  /// The node joins again as `ringmaster node` does that has lost its coordinator: with an actor system of its own, new
  /// devices and the same name.
  void join_again(size_t process);
  /// The coordinator is started again, in a process of its own, on the store of the one that was killed.
  void restart_coordinator();
  /// The machine of the coordinator, which was killed, has ended: what was not on its disk is missing.
  void lose_tail() { stored_->lose_tail(random); }
  /// Nothing gets from the coordinator that leads to etcd, or back, for so long.
  void cut_from_store(caf::timespan time);
  /// How many have led, the present one included.
  size_t leaders() const { return leaders_.size(); }
  /// What one did that led no longer; empty: nothing.
  std::string judge_former_leaders();
  void stall(size_t a, size_t b) { network_.stall(*processes_[a], *processes_[b]); }
  void cut(size_t a, size_t b, caf::timespan lag = caf::timespan{0}) {
    network_.cut(*processes_[a], *processes_[b], now_, lag);
  }
  void heal(size_t a, size_t b) { heal(*processes_[a], *processes_[b]); }
  void heal(simulated_process& a, simulated_process& b) { network_.heal(a, b); }
  /// Resumes all processes, opens all links, and injects no more faults.
  void mend();
  /// As `inject`, without waiting for an answer.
  void fault_later(uint64_t device, const proto::FaultRequest& fault);

  /// The coordinator's and the nodes'.
  size_t processes() const { return options.devices.size() + 1; }
  simulated_process& process(size_t index) { return *processes_[index]; }
  static std::string name_of(size_t process);
  /// The actor of this node; null where the process has ended.
  const node_actor& node_of(size_t process) const { return nodes_.at(process); }
  /// Whether the two have a direct way to each other.
  bool connected(size_t a, size_t b) const { return network_.connected(*processes_[a], *processes_[b]); }

  /// That processes have said to each other so far.
  uint64_t bytes_said() const { return network_.bytes(); }

  /// Kills a device from within its process, if that runs, as a broken GPU dies: other processes learn of it later.
  void kill_device(uint64_t device);

  /// The process that hosts a device; nullptr where the coordinator knows of none, or it does not run.
  simulated_process* host_of(uint64_t device);
  /// The same, as what `process` takes. Nothing where `host_of` is null.
  std::optional<size_t> host_index_of(uint64_t device);
  bool is_there(uint64_t device) { return host_of(device) != nullptr; }
  /// The state of one that is there.
  device_state& device_at(uint64_t device);
  stream_state& stream_at(uint64_t device);

  /// With what those have written that led before.
  std::vector<proto::Record> history() override;

  /// Ends all of it. Returns what did not end, empty where all did.
  std::string end();

  const nodes_options options;

private:
  /// A coordinator that leads, or has led.
  struct leader {
    simulated_process* process = nullptr;
    std::shared_ptr<simulated_store> store;
    std::shared_ptr<journal_store> log;
    std::optional<uint64_t> led_until_ns; ///< By its own clock.
    time_point cut_until{};               ///< From etcd.
  };
  /// What a coordinator has begun to store.
  struct unsure_batch {
    simulated_process* process = nullptr;
    std::shared_ptr<simulated_store> store;
    stored_cluster::batch changes;
    caf::actor writer;
  };

  void start_coordinator();
  coordinator_options recoverable(coordinator_options settings);
  /// Stores for the coordinator that leads: later, and when its process is killed meanwhile, perhaps.
  metadata_actor spawn_writer(simulated_process& own, const std::shared_ptr<simulated_store>& store);
  void store_batch(uint64_t number);
  void keep_leases();
  void note_end_of_lease(size_t of_leader);
  void elect();
  /// The process finds out that another coordinator leads now.
  void switch_over(simulated_process& own, const coordinator_way::successor& to);
  void start_node(size_t process);
  /// As nodes look for each other.
  void reach(size_t from, const node_actor& us, const proto::NodePeers::Peer& peer);
  /// Returns whether something was due.
  bool wake();
  /// To what is due next.
  bool pass_time();
  struct event {
    std::function<void()> what;
    bool of_test = true; ///< Not of the processes themselves.
  };

  const known_device* known(uint64_t device);
  caf::strong_actor_ptr in_its_process(uint64_t device, const caf::strong_actor_ptr& proxy);

  bool keeps_store() const { return options.restarts || options.standby; }
  simulated_process& client_process() { return keeps_store() ? *processes_.back() : *processes_[0]; }
  /// A handle for the coordinator in this process, which outlives the coordinator's.
  coordinator_actor proxy_in(simulated_process& own, const coordinator_actor& remote);
  /// Looks for a coordinator that has come back, as a proxy does.
  void look(simulated_process& own, coordinator_way::found then);

  static uint16_t port_of(size_t process) { return static_cast<uint16_t>(1000 + process); }

  std::filesystem::path dir_;
  std::vector<std::unique_ptr<simulated_process>> processes_;
  std::vector<std::unique_ptr<simulated_process>> former_; ///< Of nodes that have joined again.
  simulated_network network_;
  std::multimap<time_point, event> agenda_;
  time_point now_;
  std::optional<caf::scoped_actor> client_;
  std::shared_ptr<stored_cluster> stored_ = std::make_shared<stored_cluster>();
  std::vector<leader> leaders_;
  std::map<uint64_t, unsure_batch> unsure_; ///< By a number.
  std::map<uint64_t, caf::error> stored_answers_;
  uint64_t batches_ = 0;
  std::vector<std::pair<simulated_process*, coordinator_way::successor>> watches_; ///< Of proxies.
  proto::ClusterIdentity identity_;
  uint64_t callers_ = 0;
  bool ends_ = false;
  coordinator_actor served_; ///< The coordinator itself; `host` may be a proxy.
  std::vector<std::pair<coordinator_actor, journal_actor>> former_served_;
  std::vector<node_actor> nodes_; ///< By process; none for 0.
  std::vector<node_actor> former_nodes_;
  bool ended_ = false;
};

} // namespace ringmaster::test
