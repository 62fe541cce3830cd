#pragma once

#include "actors/links/greeting_desk.hpp"
#include "actors/links/link_counts.hpp"
#include "actors/links/link_fetch.hpp"
#include "actors/links/link_sender.hpp"

#include <caf/expected.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace ringmaster {

struct link_options {
  using duration = std::chrono::nanoseconds;

  std::vector<std::string> addresses; ///< That others reach us by; "all": those of the host; names are looked up here.
  uint16_t port = 0;                  ///< Of each; 0: any that is free.
  uint32_t connections = 1;           ///< To another process, for each of its addresses.
  bool checksums = false;             ///< Of what we fetch.
  duration silence = std::chrono::seconds{1}; ///< A connection that is silent for this long is made again.
  duration connect_limit = std::chrono::milliseconds{1500};
  credentials_ptr trust = no_credentials(); ///< Proved and wanted on each connection.
  stranger_limits strangers{};              ///< At each address.
};

/// The bulk connections of a process: they carry blocks and nothing else, so that no block waits for a control message
/// and no control message for a block. Who offers a block exposes it here; who is offered one fetches it from the
/// process that its memory_place names. All reading and writing is done by one thread, which waits for nothing but
/// sockets: what it reads goes into place or into a reduction, and what it sends it sends from the devices' memory.
/// Made together with a node, shared by its streams. Thread-safe.
class link_hub {
public:
  /// Errors: io_error, where it cannot listen; invalid_argument, without an address.
  static caf::expected<std::shared_ptr<link_hub>> start(const link_options& options);
  /// What is under way ends as unreachable.
  ~link_hub();
  link_hub(const link_hub&) = delete;
  link_hub& operator=(const link_hub&) = delete;

  const link_place& place() const;
  const link_counts& counts() const;

  /// Others may fetch the block for as long as the exposure lives. The window's memory is this process's.
  std::shared_ptr<link_exposure> expose(const transfer_key& key, const device_window& window);
  /// Begins to fetch a block of at least a byte. `told`, by another thread, when it has ended.
  std::shared_ptr<link_fetch> fetch(const link_place& from, const transfer_key& key, device_id device,
                                    const block_sink& sink, uint64_t bytes, std::function<void()> told);
  /// After it returns nothing more is written; waits for one slice at most.
  void revoke(const std::shared_ptr<link_fetch>& what);
  /// Another process has lost its connection to this link_place::process: ours are made again at once, or fail.
  void doubt(uint64_t process);

private:
  class io_thread;

  explicit link_hub(std::unique_ptr<io_thread> io);

  std::unique_ptr<io_thread> io_;
};

} // namespace ringmaster
