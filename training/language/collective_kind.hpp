#pragma once

#include "messages/collective.pb.h"
#include "training/language/executor.hpp"

namespace ringmaster::training {

/// As what a communication runs; whatever sends and receives, as a pair.
constexpr proto::CollectiveKind collective_kind_of(op x) {
  switch (x) {
    case op::all_reduce: return proto::ALL_REDUCE;
    case op::all_gather: return proto::ALL_GATHER;
    case op::reduce_scatter: return proto::REDUCE_SCATTER;
    case op::all_to_all: return proto::ALL_TO_ALL;
    case op::broadcast: return proto::BROADCAST;
    default: return proto::SEND_RECV;
  }
}

} // namespace ringmaster::training
