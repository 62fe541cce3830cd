#include "runtime/metadata/cluster_metadata.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "messages/version.hpp"
#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string_view>

namespace ringmaster {

namespace {

constexpr std::string_view node_prefix = "node/", device_prefix = "device/", communicator_prefix = "communicator/";

/// The value under a key with a number, into the map by that number.
template <class Id, class Message>
caf::error add(std::map<Id, Message>& to, const std::string& key, const std::string& value,
               uint64_t (*number)(const Message&)) {
  Message x;
  if (!x.ParseFromString(value) || number(x) == 0 || metadata_key::of(Id{number(x)}) != key)
    return malformed(fmt::format("the coordinator's store is corrupt: the value of \"{}\" cannot be read. Restore the "
                                 "store from a copy, or move it away to begin a new cluster",
                                 key));
  to[Id{number(x)}] = std::move(x);
  return caf::none;
}

} // namespace

std::vector<metadata_change> changes_of(const proto::StoreChanges& x) {
  std::vector<metadata_change> result;
  for (auto& entry : x.entries())
    result.push_back({entry.key(), entry.erased() ? std::nullopt : std::optional{entry.value()}});
  return result;
}

bool metadata_key::is_of_run(std::string_view key) {
  return key == cluster || key == ids;
}
std::string metadata_key::of(node_id id) {
  return fmt::format("{}{:x}", node_prefix, id.value);
}
std::string metadata_key::of(device_id id) {
  return fmt::format("{}{:x}", device_prefix, id.value);
}
std::string metadata_key::of(communicator_id id) {
  return fmt::format("{}{:x}", communicator_prefix, id.value);
}

caf::expected<cluster_metadata> cluster_metadata::of(const metadata_store::entries& entries) {
  cluster_metadata result;
  for (auto& [key, value] : entries) {
    caf::error problem;
    if (key == metadata_key::cluster)
      problem = result.cluster.ParseFromString(value) && result.cluster.cluster_id() != 0
                  ? caf::none
                  : malformed("the coordinator's store is corrupt: it does not say whose it is");
    else if (key == metadata_key::ids)
      problem = result.ids.ParseFromString(value) ? caf::none
                                                  : malformed("the coordinator's store is corrupt: its ids cannot be "
                                                              "read");
    else if (key.starts_with(node_prefix))
      problem = add<node_id, proto::StoredNode>(result.nodes, key, value, [](auto& x) { return x.node_id(); });
    else if (key.starts_with(device_prefix))
      problem = add<device_id, proto::StoredDevice>(result.devices, key, value,
                                                    [](auto& x) { return x.metadata().deviceid().value(); });
    else if (key.starts_with(communicator_prefix))
      problem = add<communicator_id, proto::StoredCommunicator>(result.communicators, key, value,
                                                                [](auto& x) { return x.comm_id(); });
    else
      problem = make_error(errc::wrong_version,
                           fmt::format("the coordinator's store has a key \"{}\" that this version "
                                       "does not know: a later one wrote it",
                                       key));
    if (problem)
      return problem;
  }
  if (result.cluster.cluster_id() == 0 && !entries.empty())
    return malformed("the coordinator's store is corrupt: it has entries, and does not say whose they are");
  if (result.cluster.protocol() > protocol_version)
    return make_error(
      errc::wrong_version,
      fmt::format("protocol {} wrote the coordinator's store, and this program speaks protocol {}: start "
                  "the later version again",
                  result.cluster.protocol(), protocol_version));
  return result;
}

caf::expected<cluster_metadata> start_incarnation(metadata_store& store, uint64_t cluster_id) {
  ensure(cluster_id != 0, "a cluster has an id");
  TRY(entries, store.load());
  TRY(found, cluster_metadata::of(*entries));
  auto& run = found->cluster;
  if (run.cluster_id() == 0)
    run.set_cluster_id(cluster_id);
  run.set_incarnation(run.incarnation() + 1);
  run.set_protocol(protocol_version);
  const std::array changes{metadata_change{metadata_key::cluster, run.SerializeAsString()}};
  RETURN_ERROR(store.commit(changes));
  return std::move(*found);
}

} // namespace ringmaster
