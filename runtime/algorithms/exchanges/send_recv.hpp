#pragma once

#include "runtime/schedule/collective.hpp"

namespace ringmaster {

inline constexpr std::string_view direct_send_recv_cost = "1 round; the sender sends count elements";

/// Send and receive, directly: in the one round there is, the root sends its input, and the peer receives it into its
/// output. The others have nothing to do.
///
/// Cost: 1 round, one message of count elements.
///
/// Source: MPI_Send and MPI_Recv, MPI: A Message-Passing Interface Standard, 1994.
schedule plan_direct_send_recv(const plan_request& request);
algorithm_cost cost_of_direct_send_recv(const plan_request& request);

} // namespace ringmaster
