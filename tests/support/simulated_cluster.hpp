#pragma once

#include "actors/coordination/coordinator.hpp"
#include "actors/devices/device.hpp"
#include "actors/hosts/journal.hpp"
#include "actors/hosts/node.hpp"
#include "actors/hosts/relay.hpp"
#include "tests/support/deterministic_system.hpp"

#include <filesystem>
#include <optional>
#include <random>
#include <span>

namespace ringmaster::test {

struct simulation_options {
  uint64_t seed = 1;
  uint32_t devices = 4;
  uint64_t memory_bytes = 1u << 16;
  uint64_t slice_bytes = 64; ///< Small, so that kills fall between the slices of a block.
  bool share_memory = true;  ///< Operations may be joint ones, where the algorithm is one for it.
  bool offer_memory = true;  ///< false: bytes travel in messages, as between hosts.
  proto::FailurePolicy policy = proto::SHRINK;
  uint64_t meet_bytes = 0; ///< The largest input for which ranks would meet in memory.
  uint32_t relays = 0;     ///< Not 0: communicators speak with streams by relays, so many, as with other processes'.
  uint32_t devices_a_host = 0;  ///< By their numbers; 0: all are on one host.
  bool supervised = false;      ///< Devices are a node's, and come back when they die.
  uint32_t hurry_per_mille = 0; ///< How often time passes although messages are pending: a slow machine.
  bool journaled = false;       ///< In memory; see `history`.
};

simulation_options with_devices(uint32_t devices, uint64_t seed = 1);

/// A fault for `simulated_cluster::inject`: at once, or where the device comes to that step of an operation.
proto::FaultRequest fault(proto::FaultRequest::Kind kind, std::optional<uint32_t> step = std::nullopt,
                          caf::timespan delay = {});

/// A whole cluster in one thread: virtual time, and whose message is next is drawn from the seed.
class simulated_cluster : public deterministic_system {
public:
  explicit simulated_cluster(const simulation_options& opts);
  ~simulated_cluster();

  /// Lets one message be handled or, where there is none, the next timeout fire. Returns whether anything was left to
  /// do.
  bool step();

  /// Runs until `done` or until nothing is left to do; fails the test after too many steps.
  void run_until(const std::function<bool()>& done);

  /// Asks `receiver` and runs until it answers.
  template <class T, class Handle, class... Ts>
  T call(const Handle& receiver, Ts&&... xs) {
    REQUIRE(self->mailbox().empty());
    auto pending = self->request(receiver, caf::infinite, std::forward<Ts>(xs)...);
    run_until([&] { return !self->mailbox().empty(); });
    T result;
    pending.receive([&](T& x) { result = std::move(x); },
                    [&](const caf::error& problem) { FAIL("no answer: ", render(problem)); });
    return result;
  }

  template <class T, class... Ts>
  T ask_coordinator(Ts&&... xs) {
    return call<T>(host, std::forward<Ts>(xs)...);
  }

  void add_devices(uint32_t count);
  /// Starts a device that joins later.
  gpu_sim::CommInitResponse init(uint32_t ranks);
  void copy_in(uint64_t device, uint64_t address, byte_block block);
  byte_block copy_out(uint64_t device, uint64_t address, uint64_t bytes);
  /// Runs until nothing is in flight on the communicator.
  gpu_sim::GetCommStatusResponse wait(uint64_t communicator);
  void inject(uint64_t device, const proto::FaultRequest& fault);

  /// All records so far.
  std::vector<proto::Record> history();

  simulation_options options;
  std::shared_ptr<journal_store> log;
  journal_actor journal_handle;
  std::vector<relay_actor> relays;
  node_actor host_node;
  std::mt19937_64 random;
  std::filesystem::path dir;
  device_options device_settings;
  coordinator_actor host;
  std::vector<device_actor> devices;
};

/// The bytes of a vector, and back.
template <class T>
std::vector<T> elements_of(const byte_block& block) {
  auto values = block.as<T>();
  return {values.begin(), values.end()};
}

} // namespace ringmaster::test
