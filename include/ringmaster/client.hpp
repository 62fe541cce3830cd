#pragma once

#include <ringmaster/communicator.hpp>
#include <ringmaster/journal.hpp>

namespace RINGMASTER_API {

/// A fault to inject into a device.
struct fault {
  /// What happens to the device.
  enum class kind : uint8_t {
    kill, ///< It dies.
    hang, ///< It stops to answer, for `delay` unless that is 0.
    slow  ///< Each round of a collective takes `delay` longer.
  };
  kind what = kind::kill;                ///< What happens.
  std::optional<uint32_t> at_round{};    ///< In the next collective, after this number of rounds; none: now.
  std::chrono::nanoseconds delay{0};     ///< hang, slow.
};

/// A client of a cluster's coordinator: makes communicators, allocates memory, injects faults, reads the journal. What it
/// made and has not given back is freed when it is destroyed, its process ends or its connection breaks. Each call waits
/// for its answer. One thread at a time; a program may have many clients.
class client {
public:
  /// A client of the cluster. `limit`: how long the coordinator may take for an answer.
  explicit client(const cluster& home, std::chrono::nanoseconds limit = std::chrono::seconds{30});
  client(client&&) noexcept;
  client& operator=(client&&) noexcept;
  ~client();

  /// A communicator of ranks 0 to `ranks` - 1 on free devices. Errors: too_few_devices.
  expected<communicator> make_communicator(uint32_t ranks, const communicator_options& options = {});
  /// The same on these devices, in rank order, which may be in other communicators. Errors: unknown_device.
  expected<communicator> make_communicator(const std::vector<device_id>& devices,
                                           const communicator_options& options = {});

  /// `bytes` > 0 of a device's memory, aligned to 256 bytes. Errors: out_of_memory, unknown_device.
  expected<device_memory> allocate(device_id device, uint64_t bytes);

  /// Injects a fault. Errors: unknown_device.
  expected<void> inject(device_id device, const fault& what);
  /// Waits until the node's devices have left their communicators and the node has exited. Returns what each
  /// communicator did, one sentence each. Errors: refused, timed_out.
  expected<std::vector<std::string>> drain(const std::string& node, std::chrono::nanoseconds within);

  /// Bytes that the ranks of a communicator have received from each other so far.
  expected<uint64_t> bytes_received(communicator_id communicator);

  /// The latest records of the cluster's journal, oldest first.
  expected<std::vector<journal_record>> journal(uint32_t records_max);
  /// Returns when all records so far are durable. Errors: io_error, no_space.
  expected<void> flush_journal();

  const std::shared_ptr<client_state>& internals() const { return state_; } ///< Internal.

private:
  std::shared_ptr<client_state> state_;
};

} // namespace RINGMASTER_API
