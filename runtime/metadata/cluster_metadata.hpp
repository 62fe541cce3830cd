#pragma once

#include "messages/ids.hpp"
#include "messages/journal.pb.h"
#include "messages/metadata.pb.h"
#include "runtime/metadata/metadata_store.hpp"

#include <caf/expected.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

/// What the store knows of a cluster.
struct cluster_metadata {
  proto::StoredCluster cluster; ///< Its id is 0 if the store is empty.
  proto::IdsReserved ids;
  std::map<node_id, proto::StoredNode> nodes;
  std::map<device_id, proto::StoredDevice> devices;
  std::map<communicator_id, proto::StoredCommunicator> communicators;

  /// Whether there is anything that a coordinator must find again.
  bool has_members() const { return !nodes.empty() || !communicators.empty(); }

  /// Errors: corrupt, with the key; wrong_version, if a later version wrote it.
  static caf::expected<cluster_metadata> of(const metadata_store::entries& entries);
};

/// Of the message in which they travel, in its order.
std::vector<metadata_change> changes_of(const proto::StoreChanges& x);

/// Keys of the store: "cluster", "ids", "node/1f", "device/1f", "communicator/1f".
namespace metadata_key {
inline constexpr const char* cluster = "cluster";
inline constexpr const char* ids = "ids";
/// Whether it says how far numbers of runs and ids may have gone: of these none may come twice, even if the end of the
/// machine has taken what was written last.
bool is_of_run(std::string_view key);
std::string of(node_id id);
std::string of(device_id id);
std::string of(communicator_id id);
} // namespace metadata_key

/// Starts the coordinator's next run on this store: a new cluster if it is empty, and in any case a higher incarnation,
/// which is stored before this returns. `cluster_id`: a random number, for a new one. Errors: those of the store.
caf::expected<cluster_metadata> start_incarnation(metadata_store& store, uint64_t cluster_id);

} // namespace ringmaster
