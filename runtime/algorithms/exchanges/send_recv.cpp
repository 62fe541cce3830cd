#include "runtime/algorithms/exchanges/send_recv.hpp"

#include "runtime/schedule/collective.hpp"

namespace ringmaster {

schedule plan_direct_send_recv(const plan_request& request) {
  schedule_builder b{request};
  if (request.rank == request.root)
    b.send(0, request.peer, {buffer::input, 0, request.count});
  else if (request.rank == request.peer)
    b.recv(0, request.root, {buffer::output, 0, request.count});
  return b.take(1);
}

algorithm_cost cost_of_direct_send_recv(const plan_request& request) {
  return {1, request.count, 1, 1, request.count};
}

} // namespace ringmaster
