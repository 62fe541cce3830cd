#pragma once

#include "etcd/etcd_client.hpp"
#include "runtime/metadata/metadata_store.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace ringmaster {

/// The coordinator's store in etcd, which several coordinators share: one of them leads, and the others wait. Keys:
///
///   PREFIX leader/LEASE   the coordinator that leads, and those that wait, in their order; the value says where it listens
///   PREFIX store/KEY      what the store has
///   PREFIX batch/...      a commit that is larger than a transaction of etcd, until all of it is in store/
///
/// The leader has a lease, which a thread of the store renews four times in its length. Every commit is a transaction that
/// compares the create revision of the leader's own key: one that was deposed changes nothing, however late it notices.
struct etcd_store_options {
  etcd_access access;
  std::string prefix;               ///< Ends with "/". One cluster has one.
  std::chrono::seconds lease{2};    ///< For how long a silent leader still leads.
  std::string name;                 ///< Of this process, for people.
  std::chrono::milliseconds wait{}; ///< To lead.
  std::function<bool()> stop;       ///< Asked now and then while waiting: whether to give up.
  /// The limit of one call; a commit is tried again until it is certain, for ten of them.
  std::chrono::milliseconds call{3000};
};

/// Waits until this process leads. Blocks. Errors: in_use, where another one leads, which it names; aborted, by `stop`;
/// those of etcd_client.
caf::expected<std::unique_ptr<metadata_store>> open_etcd_store(etcd_store_options opts);

} // namespace ringmaster
