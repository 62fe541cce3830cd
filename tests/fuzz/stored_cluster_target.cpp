// The store of a coordinator that is started again.
#include "actors/coordination/coordinator.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/support/deterministic_system.hpp"

namespace ringmaster::fuzz {

namespace {

/// A part for each key and each value.
void start_again(std::string_view bytes) {
  input_parts parts{bytes};
  std::shared_ptr<metadata_store> store = metadata_store::in_memory();
  std::vector<metadata_change> entries;
  while (!parts.empty()) {
    std::string key{parts.part()};
    entries.push_back({std::move(key), std::string{parts.part()}});
  }
  if (store->commit(entries))
    return;
  auto found = start_incarnation(*store, 4711);
  if (!found)
    return;
  test::deterministic_system system;
  coordinator_options options;
  options.identity.set_cluster_id(found->cluster.cluster_id());
  options.identity.set_incarnation(found->cluster.incarnation());
  options.ids->start_above(found->ids);
  options.found = std::move(*found);
  options.store = store;
  const auto host = system.sys.spawn<fair_coordinator>(std::move(options));
  for (int seconds = 0; seconds < 4; ++seconds) // no node comes back
    system.advance(std::chrono::seconds{1});
  (void)system.ask<proto::ClusterInfo>(host, proto::ClusterInfoRequest{});
  system.stop(host);
}

const fuzz_target fuzz_stored_cluster{"stored_cluster", start_again};

} // namespace

} // namespace ringmaster::fuzz
