#pragma once

#include "gateway/http/state/json.hpp"
#include "messages/types.pb.h"

#include <caf/expected.hpp>

#include <map>
#include <string>
#include <tuple>

namespace ringmaster::gateway {

/// Who sends to whom in an algorithm, as the HTTP interface shows it. Remembers the graphs that it was asked for. One
/// thread at a time.
class topology_cache {
public:
  static constexpr size_t edges_max = 4096;
  static constexpr uint32_t ranks_max = 4096; ///< Of more ranks no graph is computed.

  /// The fields of `Topology` in openapi.json. An algorithm that has no schedule, such as "auto", has no edges.
  const json& of(proto::CollectiveKind kind, const std::string& algorithm, uint32_t ranks);

private:
  static constexpr size_t graphs_max = 64;

  std::map<std::tuple<int, std::string, uint32_t>, json> graphs_;
};

/// The fields of `Schedule` in openapi.json. Errors: invalid_argument.
caf::expected<json> schedule_json(const std::string& kind, const std::string& algorithm, uint32_t ranks);

} // namespace ringmaster::gateway
