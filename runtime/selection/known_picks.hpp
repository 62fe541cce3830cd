#pragma once

#include "runtime/selection/selection.hpp"

#include <list>

namespace ringmaster {

/// What `select_algorithm` said lately. Where ranks lie on several hosts it plans all of them by every algorithm, which
/// is too much for each call of many that are alike. Of one communicator, whose constants stay as they are.
class known_picks {
public:
  /// Errors: as of `select_algorithm`.
  caf::expected<const algorithm*> pick(proto::CollectiveKind kind, const plan_request& request, uint64_t element_bytes,
                                       const cost_constants& constants);
  /// The ranks are others now.
  void forget() { known_.clear(); }

private:
  static constexpr size_t picks_max = 64;

  struct known_pick {
    proto::CollectiveKind kind;
    plan_request request;
    uint64_t element_bytes;
    const algorithm* which;
  };

  std::list<known_pick> known_; ///< The latest first.
};

} // namespace ringmaster
