#pragma once

#include "actors/coordination/coordinator.hpp"
#include "actors/hosts/journal.hpp"
#include "tests/support/deterministic_system.hpp"

#include <functional>
#include <optional>
#include <random>

namespace ringmaster::test {

/// A fault for `simulated_host::inject`: at once, or where the device comes to that step of an operation.
proto::FaultRequest fault(proto::FaultRequest::Kind kind, std::optional<uint32_t> step = std::nullopt,
                          caf::timespan delay = {});

/// A cluster in virtual time as its client sees it, whatever it consists of: whose message is next is drawn from a
/// seed.
class simulated_host {
public:
  explicit simulated_host(uint64_t first_seed) : seed(first_seed), random(first_seed) {}
  virtual ~simulated_host() = default;

  /// Lets one message be handled or, where there is none, the next timeout fire. Returns whether anything was left to
  /// do.
  virtual bool step() = 0;

  /// By their numbers, where a cluster of one process imitates hosts; 0: it does not.
  virtual uint32_t devices_a_host() const { return 0; }

  /// Who asks.
  virtual caf::scoped_actor& client() = 0;

  /// Runs until `done` or until nothing is left to do; fails the test after too many steps.
  void run_until(const std::function<bool()>& done);

  /// Asks `receiver` and runs until it answers.
  template <class T, class Handle, class... Ts>
  T call(const Handle& receiver, Ts&&... xs) {
    auto& self = client();
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

  gpu_sim::CommInitResponse init(uint32_t ranks);
  /// Runs until that many devices have joined.
  void await_devices(uint32_t count);
  void copy_in(uint64_t device, uint64_t address, byte_block block);
  /// Errors: the device's or the coordinator's.
  caf::expected<byte_block> read(uint64_t device, uint64_t address, uint64_t bytes);
  byte_block copy_out(uint64_t device, uint64_t address, uint64_t bytes);
  /// Runs until nothing is in flight on the communicator.
  gpu_sim::GetCommStatusResponse wait(uint64_t communicator);
  void inject(uint64_t device, const proto::FaultRequest& fault);

  /// All records so far.
  virtual std::vector<proto::Record> history();

  uint64_t seed;
  std::mt19937_64 random;
  std::shared_ptr<journal_store> log;
  journal_actor journal_handle;
  coordinator_actor host;

protected:
  /// A journal in memory; see `history`.
  void start_journal(caf::actor_system& sys);

private:
  std::pair<gpu_sim::MemcpyResponse, byte_block> copy(gpu_sim::MemcpyRequest request, byte_block block);
};

/// The bytes of a vector, and back.
template <class T>
std::vector<T> elements_of(const byte_block& block) {
  auto values = block.as<T>();
  return {values.begin(), values.end()};
}

} // namespace ringmaster::test
