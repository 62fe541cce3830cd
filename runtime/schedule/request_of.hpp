#pragma once

#include "messages/collective.pb.h"
#include "runtime/schedule/collective.hpp"

namespace ringmaster {

/// What a described collective asks of `rank`, where `world_size` ranks take part: the one way from a message to what
/// an algorithm plans by. Whether that makes sense, `check_request` says.
plan_request request_of(const proto::Collective& what, uint32_t world_size, uint32_t rank);

/// The same of a communicator's plan, which also says where its ranks lie.
plan_request request_of(const proto::OperationPlan& plan, uint32_t rank);

} // namespace ringmaster
