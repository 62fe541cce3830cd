#pragma once

#include "messages/types.pb.h"

namespace ringmaster {

/// Whether the kind combines the inputs of several ranks.
inline bool reduces(proto::CollectiveKind kind) {
  return kind == proto::ALL_REDUCE || kind == proto::REDUCE || kind == proto::REDUCE_SCATTER;
}

} // namespace ringmaster
