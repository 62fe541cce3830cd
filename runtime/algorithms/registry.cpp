#include "runtime/algorithms/registry.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/algorithms/exchanges/exchanges.hpp"
#include "runtime/algorithms/halvings/halvings.hpp"
#include "runtime/algorithms/hierarchies/hierarchies.hpp"
#include "runtime/algorithms/rings/rings.hpp"
#include "runtime/algorithms/trees/trees.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/schedule/collective.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

namespace {

// A block's elements go from rank to rank in one order.
constexpr algorithm_facts same_anywhere{.same_anywhere = true};
constexpr algorithm_facts course_call{.course_call = true};
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

/// The algorithms that come with Ringmaster, by kind, in the order in which they are listed to people.
std::vector<algorithm> algorithm_catalogue() {
  return {
    {"ring", proto::ALL_REDUCE,
     "2(N-1) rounds; each rank sends 2(N-1)/N x count elements, which no algorithm can undercut", plan_ring_all_reduce,
     cost_of_ring_all_reduce, nullptr, course_call},
    {"ring_pipelined", proto::ALL_REDUCE,
     "2(N-1)+P-1 rounds for P pieces a block; each rank sends 2(N-1)/N x count elements",
     plan_ring_pipelined_all_reduce, cost_of_ring_pipelined_all_reduce, nullptr, in_chunks},
    {"double_tree", proto::ALL_REDUCE,
     "at most 4(ceil(log2 N) + P - 1) rounds for P pieces a half; each rank sends about 2 x count elements",
     plan_double_tree_all_reduce, cost_of_double_tree_all_reduce, nullptr, in_chunks},
    {"chain", proto::ALL_REDUCE, "2(N-2+P) rounds for P pieces; each rank sends 2 x count elements",
     plan_chain_all_reduce, cost_of_chain_all_reduce, nullptr, in_chunks_same_anywhere},
    {"tree", proto::ALL_REDUCE,
     "2 ceil(log2 N) rounds; rank 0 sends ceil(log2 N) x count elements and receives as many", plan_tree_all_reduce,
     cost_of_tree_all_reduce, nullptr, same_anywhere},
    {"butterfly", proto::ALL_REDUCE,
     "log2 N rounds, each rank sends log2 N x count elements; 2 rounds more where N is not a power of two",
     plan_butterfly_all_reduce, cost_of_butterfly_all_reduce, nullptr, same_anywhere},
    {"naive", proto::ALL_REDUCE,
     "N rounds; rank 0 receives (N-1) x count elements and sends as many, the others count each way",
     plan_naive_all_reduce, cost_of_naive_all_reduce, nullptr, same_anywhere},
    {"halving_doubling", proto::ALL_REDUCE,
     "2 log2 P rounds and 2(P-1)/P x count elements for P = N a power of two; otherwise two more, and count more",
     plan_halving_doubling_all_reduce, cost_of_halving_doubling_all_reduce, nullptr, same_anywhere},
    {"direct", proto::ALL_REDUCE,
     "2 rounds; each rank sends about 2(N-1)/N x count elements, and reduces its block in rank order",
     plan_direct_all_reduce, cost_of_direct_all_reduce, nullptr, shared_memory_in_rank_order},
    {"one_shot", proto::ALL_REDUCE,
     "one round; each rank sends its whole input N-1 times, and reduces all in rank order", plan_one_shot_all_reduce,
     cost_of_one_shot_all_reduce, nullptr, joint_same_anywhere},
    {"hierarchical", proto::ALL_REDUCE,
     "2(H-1) rounds across H hosts, 2(S-1) within one of S ranks; a host sends 2(H-1)/H x count elements across",
     plan_hierarchical_all_reduce, cost_of_hierarchical_all_reduce, nullptr, by_hosts},
    {"double_tree", proto::REDUCE,
     "at most 2(ceil(log2 N) + P - 1) rounds for P pieces a half; each rank sends count elements",
     plan_double_tree_reduce, cost_of_double_tree_reduce, nullptr, in_chunks},
    {"chain", proto::REDUCE, "N-2+P rounds for P pieces; each rank sends count elements", plan_chain_reduce,
     cost_of_chain_reduce, nullptr, in_chunks_same_anywhere},
    {"tree", proto::REDUCE,
     "ceil(log2 N) rounds; the root receives ceil(log2 N) x count elements, the others send count", plan_tree_reduce,
     cost_of_tree_reduce, nullptr, same_anywhere},
    {"naive", proto::REDUCE, "N-1 rounds; the root receives (N-1) x count elements", plan_naive_reduce,
     cost_of_naive_reduce, nullptr, same_anywhere},
    {"halving", proto::REDUCE,
     "2 log2 P rounds for P = N a power of two, and at most the elements once; otherwise one more", plan_halving_reduce,
     cost_of_halving_reduce, nullptr, same_anywhere},
    {"direct", proto::REDUCE, "2 rounds; each rank sends count elements, and reduces its block in rank order",
     plan_direct_reduce, cost_of_direct_reduce, nullptr, shared_memory_in_rank_order},
    {"double_tree", proto::BROADCAST,
     "at most 2(ceil(log2 N) + P - 1) rounds for P pieces a half; each rank sends about count elements",
     plan_double_tree_broadcast, cost_of_double_tree_broadcast, nullptr, in_chunks},
    {"chain", proto::BROADCAST, "N-2+P rounds for P pieces; each rank sends count elements", plan_chain_broadcast,
     cost_of_chain_broadcast, nullptr, in_chunks},
    {"tree", proto::BROADCAST, "ceil(log2 N) rounds; the root sends ceil(log2 N) x count elements", plan_tree_broadcast,
     cost_of_tree_broadcast},
    {"naive", proto::BROADCAST, "1 round; the root sends (N-1) x count elements", plan_naive_broadcast,
     cost_of_naive_broadcast},
    {"scatter_all_gather", proto::BROADCAST,
     "2 ceil(log2 N) rounds; the root sends at most 2(N-1)/N x count elements, where a tree sends log2 N x count",
     plan_scatter_all_gather_broadcast, cost_of_scatter_all_gather_broadcast},
    {"direct", proto::BROADCAST, "one round; the root sends the whole N-1 times", plan_direct_broadcast,
     cost_of_direct_broadcast, nullptr, jointly},
    {"hierarchical", proto::BROADCAST,
     "H-2+P rounds across H hosts for P pieces a shard, S within one of S ranks; each host sends count elements across",
     plan_hierarchical_broadcast, cost_of_hierarchical_broadcast, nullptr, in_chunks_by_hosts},
    {"ring", proto::ALL_GATHER, "N-1 rounds; each rank sends every block but one, which no algorithm can undercut",
     plan_ring_all_gather, cost_of_ring_all_gather},
    {"naive", proto::ALL_GATHER, "N rounds; rank 0 receives every block but its own and sends the whole to N-1 ranks",
     plan_naive_all_gather, cost_of_naive_all_gather},
    {"butterfly", proto::ALL_GATHER,
     "log2 P rounds for P = N a power of two, and every block but one; otherwise two more, and all elements once more",
     plan_butterfly_all_gather, cost_of_butterfly_all_gather},
    {"bruck", proto::ALL_GATHER,
     "ceil(log2 N) rounds and every block but one, for every N: no algorithm can undercut either",
     plan_bruck_all_gather, cost_of_bruck_all_gather},
    {"direct", proto::ALL_GATHER, "one round; each rank sends its block N-1 times", plan_direct_all_gather,
     cost_of_direct_all_gather, nullptr, jointly},
    {"hierarchical", proto::ALL_GATHER,
     "H-1 rounds across H hosts, S-1 within one of S ranks; a host receives every block but its own from across, once",
     plan_hierarchical_all_gather, cost_of_hierarchical_all_gather, nullptr, by_hosts},
    {"ring", proto::REDUCE_SCATTER, "N-1 rounds; each rank sends every block but one, which no algorithm can undercut",
     plan_ring_reduce_scatter, cost_of_ring_reduce_scatter, nullptr, same_anywhere},
    {"naive", proto::REDUCE_SCATTER, "N rounds; rank 0 receives N-1 whole inputs and sends every block but its own",
     plan_naive_reduce_scatter, cost_of_naive_reduce_scatter, nullptr, same_anywhere},
    {"pairwise", proto::REDUCE_SCATTER,
     "N-1 rounds; each rank sends every block but its own, which no algorithm can undercut",
     plan_pairwise_reduce_scatter, cost_of_pairwise_reduce_scatter, nullptr, same_anywhere},
    {"halving", proto::REDUCE_SCATTER,
     "log2 P rounds for P = N a power of two, and every block but one; otherwise two more, and all elements once more",
     plan_halving_reduce_scatter, cost_of_halving_reduce_scatter, nullptr, same_anywhere},
    {"direct", proto::REDUCE_SCATTER,
     "one round; each rank sends every block but its own, and reduces its own in rank order",
     plan_direct_reduce_scatter, cost_of_direct_reduce_scatter, nullptr, shared_memory_in_rank_order},
    {"hierarchical", proto::REDUCE_SCATTER,
     "H-1 rounds across H hosts, S-1 within one of S ranks; a host sends every block but its own across, once",
     plan_hierarchical_reduce_scatter, cost_of_hierarchical_reduce_scatter, nullptr, by_hosts_same_anywhere},
    {"pairwise", proto::ALL_TO_ALL,
     "N-1 rounds; each rank sends every block but its own, which no algorithm can undercut", plan_pairwise_all_to_all,
     cost_of_pairwise_all_to_all},
    {"naive", proto::ALL_TO_ALL, "one round; each rank sends every block but its own", plan_direct_all_to_all,
     cost_of_direct_all_to_all},
    {"bruck", proto::ALL_TO_ALL,
     "ceil(log2 N) rounds and a local one; each rank sends about (N/2) log2 N blocks, in log2 N messages",
     plan_bruck_all_to_all, cost_of_bruck_all_to_all, check_bruck_all_to_all},
    {"direct", proto::ALL_TO_ALL, "one round; each rank sends every block but its own", plan_direct_all_to_all,
     cost_of_direct_all_to_all, nullptr, jointly},
    {"hierarchical", proto::ALL_TO_ALL,
     "S-1 rounds within a host of S ranks, H-1 across H hosts; a rank sends H-1 messages across, not N-S",
     plan_hierarchical_all_to_all, cost_of_hierarchical_all_to_all, nullptr, by_hosts},
    {"tree", proto::GATHER,
     "ceil(log2 N) rounds; the root receives every block but its own, no other rank more than half of them",
     plan_tree_gather, cost_of_tree_gather},
    {"naive", proto::GATHER, "N-1 rounds; the root receives every block but its own", plan_naive_gather,
     cost_of_naive_gather},
    {"direct", proto::GATHER, "one round; the root receives every block but its own", plan_direct_gather,
     cost_of_direct_gather, nullptr, jointly},
    {"tree", proto::SCATTER,
     "ceil(log2 N) rounds; the root sends every block but its own, no other rank more than half of them",
     plan_tree_scatter, cost_of_tree_scatter},
    {"naive", proto::SCATTER, "N-1 rounds; the root sends every block but its own", plan_naive_scatter,
     cost_of_naive_scatter},
    {"direct", proto::SCATTER, "one round; the root sends every block but its own", plan_direct_scatter,
     cost_of_direct_scatter, nullptr, jointly},
    {"dissemination", proto::BARRIER, "ceil(log2 N) rounds; each rank sends a token in each",
     plan_dissemination_barrier, cost_of_dissemination_barrier},
    {"tree", proto::BARRIER, "2 ceil(log2 N) rounds; rank 0 sends ceil(log2 N) tokens and receives as many",
     plan_tree_barrier, cost_of_tree_barrier},
    {"naive", proto::BARRIER, "2 rounds; rank 0 receives N-1 tokens and sends as many", plan_naive_barrier,
     cost_of_naive_barrier},
    {"direct", proto::BARRIER, "ceil(log2 N) rounds; each rank sends a token in each", plan_dissemination_barrier,
     cost_of_dissemination_barrier, nullptr, jointly},
    {"direct", proto::SEND_RECV, "1 round; the sender sends count elements", plan_direct_send_recv,
     cost_of_direct_send_recv, nullptr, jointly},
  };
}

/// "ring, naive": the names that a caller may give.
std::string names_of(proto::CollectiveKind kind) {
  std::string result;
  for (const auto& candidate : algorithms())
    if (candidate.kind == kind)
      result += fmt::format("{}{}", result.empty() ? "" : ", ", candidate.name);
  return result;
}

caf::error refusal_of(const algorithm& chosen, const plan_request& request) {
  RETURN_ERROR(check_request(chosen.kind, request));
  return chosen.check != nullptr ? chosen.check(request) : caf::error{};
}

/// No rank has anything to send.
bool is_empty(proto::CollectiveKind kind, const plan_request& request) {
  if (kind == proto::BARRIER)
    return false;
  return std::all_of(request.counts.begin(), request.counts.end(), [](auto count) { return count == 0; })
         && (!request.counts.empty() || request.count == 0);
}

/// Every collective of one rank: one copy from input to output.
schedule plan_alone(proto::CollectiveKind kind, const plan_request& request) {
  schedule result;
  auto count = output_count(kind, request, 0);
  if (count == 0)
    return result;
  result.rounds = 1;
  result.steps.push_back({.what = action::copy,
                          .source = {buffer::input, 0, count},
                          .destination = {buffer::output, 0, count},
                          .finish = reduces(kind)});
  return result;
}

std::vector<algorithm>& known_algorithms() {
  static std::vector<algorithm> all = algorithm_catalogue();
  return all;
}

/// The first of the kind for which `holds`.
template <class Condition>
const algorithm* first_of(proto::CollectiveKind kind, Condition holds) {
  for (const auto& x : known_algorithms())
    if (x.kind == kind && holds(x))
      return &x;
  return nullptr;
}

} // namespace

const std::vector<algorithm>& algorithms() {
  return known_algorithms();
}

caf::error register_algorithm(const algorithm& added) {
  auto refused = [&](std::string_view why) {
    return invalid(fmt::format("the algorithm \"{}\" for {} cannot be registered: {}", added.name, name_of(added.kind),
                               why));
  };
  if (!proto::CollectiveKind_IsValid(added.kind))
    return refused("there is no such collective");
  if (added.name.empty())
    return refused("it has no name");
  if (added.plan == nullptr || added.cost == nullptr)
    return refused("it needs a function for its plan and one for its cost");
  if (find_algorithm(added.kind, added.name))
    return refused("there is one of that name");
  known_algorithms().push_back(added);
  return caf::none;
}

caf::expected<const algorithm*> find_algorithm(proto::CollectiveKind kind, std::string_view name) {
  auto chosen = first_of(kind, [&](auto& x) { return x.name == name; });
  if (chosen == nullptr)
    return invalid(fmt::format("there is no algorithm \"{}\" for {}; there are: {}", name, name_of(kind),
                               names_of(kind)));
  return chosen;
}

bool is_shared_memory(proto::CollectiveKind kind, std::string_view name) {
  return first_of(kind, [&](auto& x) { return x.name == name && x.is.joint; }) != nullptr;
}

bool is_same_anywhere(proto::CollectiveKind kind, std::string_view name) {
  return first_of(kind, [&](auto& x) { return x.name == name && x.is.same_anywhere; }) != nullptr;
}

const algorithm* first_shared_memory(proto::CollectiveKind kind) {
  return first_of(kind, [](auto& x) { return x.is.joint; });
}

const algorithm* first_in_rank_order(proto::CollectiveKind kind) {
  return first_of(kind, [](auto& x) { return x.is.in_rank_order; });
}

const algorithm& course_algorithm() {
  const auto& all = known_algorithms();
  auto found = std::find_if(all.begin(), all.end(), [](auto& x) { return x.is.course_call; });
  ensure(found != all.end(), "every kind has an algorithm of this name");
  return *found;
}

caf::expected<const algorithm*> find_algorithm(proto::CollectiveKind kind, std::string_view name,
                                               const plan_request& request) {
  auto chosen = find_algorithm(kind, name);
  if (chosen)
    RETURN_ERROR(refusal_of(**chosen, request));
  return chosen;
}

caf::expected<schedule> plan(proto::CollectiveKind kind, std::string_view algorithm_name, const plan_request& request) {
  TRY(chosen, find_algorithm(kind, algorithm_name, request));
  if (is_empty(kind, request))
    return schedule{};
  if (request.world_size == 1)
    return plan_alone(kind, request);
  return (*chosen)->plan(request);
}

caf::expected<std::vector<schedule>> plan_all(proto::CollectiveKind kind, std::string_view algorithm_name,
                                              plan_request request) {
  std::vector<schedule> ranks;
  ranks.reserve(request.world_size);
  for (request.rank = 0; request.rank < request.world_size; ++request.rank) {
    TRY(planned, plan(kind, algorithm_name, request));
    ranks.push_back(std::move(*planned));
  }
  return ranks;
}

caf::expected<algorithm_cost> cost_of(proto::CollectiveKind kind, std::string_view algorithm_name,
                                      const plan_request& request) {
  TRY(chosen, find_algorithm(kind, algorithm_name, request));
  if (is_empty(kind, request))
    return algorithm_cost{};
  if (request.world_size == 1)
    return algorithm_cost{output_count(kind, request, 0) == 0 ? 0u : 1u, 0, 0, 0, 0};
  return (*chosen)->cost(request);
}

} // namespace ringmaster
