#include "runtime/algorithms/catalogue.hpp"

#include "runtime/algorithms/exchanges/direct_exchange.hpp"
#include "runtime/algorithms/exchanges/direct_reduction.hpp"
#include "runtime/algorithms/exchanges/naive.hpp"
#include "runtime/algorithms/exchanges/naive_blocks.hpp"
#include "runtime/algorithms/exchanges/send_recv.hpp"
#include "runtime/algorithms/halvings/butterfly.hpp"
#include "runtime/algorithms/halvings/butterfly_blocks.hpp"
#include "runtime/algorithms/halvings/halving.hpp"
#include "runtime/algorithms/halvings/halving_doubling.hpp"
#include "runtime/algorithms/halvings/scatter_all_gather.hpp"
#include "runtime/algorithms/hierarchies/hierarchical_blocks.hpp"
#include "runtime/algorithms/hierarchies/hierarchical_broadcast.hpp"
#include "runtime/algorithms/hierarchies/hierarchical_reductions.hpp"
#include "runtime/algorithms/rings/bruck.hpp"
#include "runtime/algorithms/rings/chain.hpp"
#include "runtime/algorithms/rings/dissemination.hpp"
#include "runtime/algorithms/rings/pairwise.hpp"
#include "runtime/algorithms/rings/ring.hpp"
#include "runtime/algorithms/rings/ring_pipelined.hpp"
#include "runtime/algorithms/trees/double_tree.hpp"
#include "runtime/algorithms/trees/tree.hpp"
#include "runtime/algorithms/trees/tree_blocks.hpp"

namespace ringmaster {

namespace {

// A block's elements go from rank to rank in one order.
constexpr algorithm_facts same_anywhere{.same_anywhere = true};
constexpr algorithm_facts in_chunks{.in_chunks = true};
constexpr algorithm_facts by_hosts{.by_hosts = true};
constexpr algorithm_facts by_hosts_same_anywhere{.same_anywhere = true, .by_hosts = true};
constexpr algorithm_facts in_chunks_by_hosts{.in_chunks = true, .by_hosts = true};
constexpr algorithm_facts in_chunks_same_anywhere{.same_anywhere = true, .in_chunks = true};
// The `direct` ones: what `shared_memory_execution` does, with messages.
constexpr algorithm_facts jointly{.joint = true};
constexpr algorithm_facts shared_memory_in_rank_order{.joint = true, .same_anywhere = true, .in_rank_order = true};
// As much scratch as there are ranks: so not what is taken for its order.
constexpr algorithm_facts joint_same_anywhere{.joint = true, .same_anywhere = true};

} // namespace

std::vector<algorithm> algorithm_catalogue() {
  return {
    {"ring",
     proto::ALL_REDUCE,
     ring_all_reduce_cost,
     plan_ring_all_reduce,
     cost_of_ring_all_reduce,
     nullptr,
     {.course_call = true}},
    {"ring_pipelined", proto::ALL_REDUCE, ring_pipelined_all_reduce_cost, plan_ring_pipelined_all_reduce,
     cost_of_ring_pipelined_all_reduce, nullptr, in_chunks},
    {"double_tree", proto::ALL_REDUCE, double_tree_all_reduce_cost, plan_double_tree_all_reduce,
     cost_of_double_tree_all_reduce, nullptr, in_chunks},
    {"chain", proto::ALL_REDUCE, chain_all_reduce_cost, plan_chain_all_reduce, cost_of_chain_all_reduce, nullptr,
     in_chunks_same_anywhere},
    {"tree", proto::ALL_REDUCE, tree_all_reduce_cost, plan_tree_all_reduce, cost_of_tree_all_reduce, nullptr,
     same_anywhere},
    {"butterfly", proto::ALL_REDUCE, butterfly_all_reduce_cost, plan_butterfly_all_reduce, cost_of_butterfly_all_reduce,
     nullptr, same_anywhere},
    {"naive", proto::ALL_REDUCE, naive_all_reduce_cost, plan_naive_all_reduce, cost_of_naive_all_reduce, nullptr,
     same_anywhere},
    {"halving_doubling", proto::ALL_REDUCE, halving_doubling_all_reduce_cost, plan_halving_doubling_all_reduce,
     cost_of_halving_doubling_all_reduce, nullptr, same_anywhere},
    {"direct", proto::ALL_REDUCE, direct_all_reduce_cost, plan_direct_all_reduce, cost_of_direct_all_reduce, nullptr,
     shared_memory_in_rank_order},
    {"one_shot", proto::ALL_REDUCE, one_shot_all_reduce_cost, plan_one_shot_all_reduce, cost_of_one_shot_all_reduce,
     nullptr, joint_same_anywhere},
    {"hierarchical", proto::ALL_REDUCE, hierarchical_all_reduce_cost, plan_hierarchical_all_reduce,
     cost_of_hierarchical_all_reduce, nullptr, by_hosts},
    {"double_tree", proto::REDUCE, double_tree_reduce_cost, plan_double_tree_reduce, cost_of_double_tree_reduce,
     nullptr, in_chunks},
    {"chain", proto::REDUCE, chain_reduce_cost, plan_chain_reduce, cost_of_chain_reduce, nullptr,
     in_chunks_same_anywhere},
    {"tree", proto::REDUCE, tree_reduce_cost, plan_tree_reduce, cost_of_tree_reduce, nullptr, same_anywhere},
    {"naive", proto::REDUCE, naive_reduce_cost, plan_naive_reduce, cost_of_naive_reduce, nullptr, same_anywhere},
    {"halving", proto::REDUCE, halving_reduce_cost, plan_halving_reduce, cost_of_halving_reduce, nullptr,
     same_anywhere},
    {"direct", proto::REDUCE, direct_reduce_cost, plan_direct_reduce, cost_of_direct_reduce, nullptr,
     shared_memory_in_rank_order},
    {"double_tree", proto::BROADCAST, double_tree_broadcast_cost, plan_double_tree_broadcast,
     cost_of_double_tree_broadcast, nullptr, in_chunks},
    {"chain", proto::BROADCAST, chain_broadcast_cost, plan_chain_broadcast, cost_of_chain_broadcast, nullptr,
     in_chunks},
    {"tree", proto::BROADCAST, tree_broadcast_cost, plan_tree_broadcast, cost_of_tree_broadcast},
    {"naive", proto::BROADCAST, naive_broadcast_cost, plan_naive_broadcast, cost_of_naive_broadcast},
    {"scatter_all_gather", proto::BROADCAST, scatter_all_gather_broadcast_cost, plan_scatter_all_gather_broadcast,
     cost_of_scatter_all_gather_broadcast},
    {"direct", proto::BROADCAST, direct_broadcast_cost, plan_direct_broadcast, cost_of_direct_broadcast, nullptr,
     jointly},
    {"hierarchical", proto::BROADCAST, hierarchical_broadcast_cost, plan_hierarchical_broadcast,
     cost_of_hierarchical_broadcast, nullptr, in_chunks_by_hosts},
    {"ring", proto::ALL_GATHER, ring_all_gather_cost, plan_ring_all_gather, cost_of_ring_all_gather},
    {"naive", proto::ALL_GATHER, naive_all_gather_cost, plan_naive_all_gather, cost_of_naive_all_gather},
    {"butterfly", proto::ALL_GATHER, butterfly_all_gather_cost, plan_butterfly_all_gather,
     cost_of_butterfly_all_gather},
    {"bruck", proto::ALL_GATHER, bruck_all_gather_cost, plan_bruck_all_gather, cost_of_bruck_all_gather},
    {"direct", proto::ALL_GATHER, direct_all_gather_cost, plan_direct_all_gather, cost_of_direct_all_gather, nullptr,
     jointly},
    {"hierarchical", proto::ALL_GATHER, hierarchical_all_gather_cost, plan_hierarchical_all_gather,
     cost_of_hierarchical_all_gather, nullptr, by_hosts},
    {"ring", proto::REDUCE_SCATTER, ring_reduce_scatter_cost, plan_ring_reduce_scatter, cost_of_ring_reduce_scatter,
     nullptr, same_anywhere},
    {"naive", proto::REDUCE_SCATTER, naive_reduce_scatter_cost, plan_naive_reduce_scatter, cost_of_naive_reduce_scatter,
     nullptr, same_anywhere},
    {"pairwise", proto::REDUCE_SCATTER, pairwise_reduce_scatter_cost, plan_pairwise_reduce_scatter,
     cost_of_pairwise_reduce_scatter, nullptr, same_anywhere},
    {"halving", proto::REDUCE_SCATTER, halving_reduce_scatter_cost, plan_halving_reduce_scatter,
     cost_of_halving_reduce_scatter, nullptr, same_anywhere},
    {"direct", proto::REDUCE_SCATTER, direct_reduce_scatter_cost, plan_direct_reduce_scatter,
     cost_of_direct_reduce_scatter, nullptr, shared_memory_in_rank_order},
    {"hierarchical", proto::REDUCE_SCATTER, hierarchical_reduce_scatter_cost, plan_hierarchical_reduce_scatter,
     cost_of_hierarchical_reduce_scatter, nullptr, by_hosts_same_anywhere},
    {"pairwise", proto::ALL_TO_ALL, pairwise_all_to_all_cost, plan_pairwise_all_to_all, cost_of_pairwise_all_to_all},
    {"naive", proto::ALL_TO_ALL, direct_all_to_all_cost, plan_direct_all_to_all, cost_of_direct_all_to_all},
    {"bruck", proto::ALL_TO_ALL, bruck_all_to_all_cost, plan_bruck_all_to_all, cost_of_bruck_all_to_all,
     check_bruck_all_to_all},
    {"direct", proto::ALL_TO_ALL, direct_all_to_all_cost, plan_direct_all_to_all, cost_of_direct_all_to_all, nullptr,
     jointly},
    {"hierarchical", proto::ALL_TO_ALL, hierarchical_all_to_all_cost, plan_hierarchical_all_to_all,
     cost_of_hierarchical_all_to_all, nullptr, by_hosts},
    {"tree", proto::GATHER, tree_gather_cost, plan_tree_gather, cost_of_tree_gather},
    {"naive", proto::GATHER, naive_gather_cost, plan_naive_gather, cost_of_naive_gather},
    {"direct", proto::GATHER, direct_gather_cost, plan_direct_gather, cost_of_direct_gather, nullptr, jointly},
    {"tree", proto::SCATTER, tree_scatter_cost, plan_tree_scatter, cost_of_tree_scatter},
    {"naive", proto::SCATTER, naive_scatter_cost, plan_naive_scatter, cost_of_naive_scatter},
    {"direct", proto::SCATTER, direct_scatter_cost, plan_direct_scatter, cost_of_direct_scatter, nullptr, jointly},
    {"dissemination", proto::BARRIER, dissemination_barrier_cost, plan_dissemination_barrier,
     cost_of_dissemination_barrier},
    {"tree", proto::BARRIER, tree_barrier_cost, plan_tree_barrier, cost_of_tree_barrier},
    {"naive", proto::BARRIER, naive_barrier_cost, plan_naive_barrier, cost_of_naive_barrier},
    {"direct", proto::BARRIER, dissemination_barrier_cost, plan_dissemination_barrier, cost_of_dissemination_barrier,
     nullptr, jointly},
    {"direct", proto::SEND_RECV, direct_send_recv_cost, plan_direct_send_recv, cost_of_direct_send_recv, nullptr,
     jointly},
  };
}

} // namespace ringmaster
