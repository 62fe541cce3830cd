#pragma once

#include "runtime/metadata/metadata_store.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <vector>

namespace ringmaster::test {

/// What the coordinators of a cluster have stored, on a disk or in etcd. It outlives their processes.
class stored_cluster {
public:
  using entries = metadata_store::entries;
  using batch = std::vector<metadata_change>;
  using time_point = std::chrono::steady_clock::time_point;

  // -- a disk, as RocksDB uses it: a batch is there as a whole or not at all, and none without those before it --

  /// `synced`: it is on the disk, and with it all before it; else the end of the machine may take it.
  void write(const batch& changes, bool synced);
  /// The machine has ended: of the batches that were not synced, a number from the end, drawn, is missing. A batch that
  /// was cut is missing.
  void lose_tail(std::mt19937_64& random);

  const entries& now() const { return now_; }

  // -- etcd: one coordinator leads, the one whose key is the oldest that exists --

  /// A new leader. Returns the create revision of its key.
  uint64_t lead(time_point lease_ends) {
    lease_ends_ = lease_ends;
    return leader_ = ++revision_;
  }
  /// Renews the leader's lease. Returns whether it still has one.
  bool renew(uint64_t leader, time_point now, time_point lease_ends) {
    if (!leads(leader) || now >= lease_ends_)
      return false;
    lease_ends_ = lease_ends;
    return true;
  }
  /// Lets the lease end where it has run out. Returns whether no coordinator leads.
  bool is_free(time_point now) {
    if (now >= lease_ends_)
      leader_ = 0;
    return leader_ == 0;
  }
  bool leads(uint64_t leader) const { return leader != 0 && leader == leader_; }
  time_point lease_ends() const { return lease_ends_; }

private:
  static void apply(const batch& changes, entries& to);

  entries now_, on_disk_;
  std::vector<batch> tail_; ///< Not synced.
  uint64_t revision_ = 0, leader_ = 0;
  time_point lease_ends_;
};

/// A coordinator's store. Shared, it is as the one in etcd (etcd/etcd_metadata_store.hpp): a commit compares the create
/// revision of the leader's key, and a coordinator that has not renewed its lease in time leads for certain no longer.
class simulated_store final : public metadata_store {
public:
  using time_point = stored_cluster::time_point;

  struct options {
    std::shared_ptr<stored_cluster> where;
    bool sync = true;
    bool shared = false;
    caf::timespan lease{0};            ///< Of a shared one.
    std::function<time_point()> clock; ///< Which goes on while the process is paused.
  };

  explicit simulated_store(options opts);

  caf::expected<entries> load() override { return options_.where->now(); }
  caf::error commit(std::span<const metadata_change> changes) override;
  caf::error look_after() override { return deposed(); }
  bool waits() const override { return false; }
  bool is_shared() const override { return options_.shared; }
  bool holds() const override { return !options_.shared || (!lost_ && options_.clock() < holds_until_); }
  caf::error deposed() const override;

  /// As the thread does that keeps a lease.
  void renew();
  time_point holds_until() const { return holds_until_; }

private:
  const options options_;
  uint64_t revision_ = 0;
  time_point holds_until_;
  bool lost_ = false;
};

} // namespace ringmaster::test
