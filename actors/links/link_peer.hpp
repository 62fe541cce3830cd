#pragma once

#include "actors/links/link_receiver.hpp"

#include <memory>
#include <vector>

namespace ringmaster {

/// Another process, as far as blocks are fetched from it: the connections there, over which large blocks are divided.
/// Where one fails, what it had goes over the others; where none is left, the fetches end as unreachable, and so do
/// those that start before it is tried again: no fetch waits for it twice. The I/O thread's.
class link_peer : private link_receiver::owner {
public:
  using time_point = link_receiver::time_point;

  link_peer(io_loop& loop, const link_options& options, link_counts& counts, const link_place& there);

  void fetch(const std::shared_ptr<link_fetch>& what);
  void cancel(const link_fetch& what);
  void doubt();
  void on_time(time_point now);
  time_point due() const;
  /// Whether nothing would be lost without it.
  bool forgettable(time_point now) const;

private:
  void on_failed(std::vector<wanted_part> parts, const caf::error& why) override;
  /// The one with the least to do of those that have not failed; null: all have.
  link_receiver* freest(time_point now);

  uint64_t process_;
  caf::error failure_; ///< Where there is no connection at all.
  std::vector<std::unique_ptr<link_receiver>> connections_;
};

} // namespace ringmaster
