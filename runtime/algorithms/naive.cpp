#include "runtime/algorithms/naive.hpp"

namespace ringmaster {

namespace {

void plan_rank_0(schedule& result, uint32_t world_size, block_range input, block_range output) {
  for (uint32_t peer = 1; peer < world_size; ++peer)
    result.steps.push_back({.what = action::recv_reduce,
                            .round = peer - 1,
                            .peer = peer,
                            .source = peer == 1 ? input : output,
                            .destination = output,
                            .finish = peer + 1 == world_size});
  for (uint32_t peer = 1; peer < world_size; ++peer)
    result.steps.push_back({.what = action::send, .round = world_size - 1, .peer = peer, .source = output});
}

void plan_other_rank(schedule& result, const plan_request& request, block_range input, block_range output) {
  result.steps.push_back({.what = action::send, .round = request.rank - 1, .peer = 0, .source = input});
  result.steps.push_back(
    {.what = action::recv, .round = request.world_size - 1, .peer = 0, .destination = output});
}

} // namespace

schedule plan_naive_all_reduce(const plan_request& request) {
  block_range input{buffer::input, 0, request.count};
  block_range output{buffer::output, 0, request.count};
  schedule result;
  result.rounds = request.world_size;
  if (request.rank == 0)
    plan_rank_0(result, request.world_size, input, output);
  else
    plan_other_rank(result, request, input, output);
  return result;
}

algorithm_cost cost_of_naive_all_reduce(const plan_request& request) {
  auto others = uint64_t{request.world_size} - 1;
  return {request.world_size, others * request.count, others, request.world_size, 2 * others * request.count};
}

} // namespace ringmaster
