#pragma once

#include <ringmaster/collectives.hpp>
#include <ringmaster/schedule.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace RINGMASTER_API {

/// A collective algorithm of your own: pure functions from a request to a rank's schedule and to its cost. They are
/// asked for two ranks or more and for at least one element.
struct algorithm_definition {
  std::string_view name{};                                 ///< Of the kind's; must outlive the program.
  collective_kind kind = collective_kind::all_reduce;      ///< What it does.
  std::string_view formula{};                              ///< Rounds and elements, for people; outlives the program.
  schedule (*plan)(const plan_request& request) = nullptr; ///< The schedule of request.rank.
  algorithm_cost (*cost)(const plan_request& request) = nullptr; ///< Independent of the rank.
};

/// Registers an algorithm beside the built-in ones, by whose names clusters, proofs and simulations then find it. Call
/// it when the program starts, in every process of a cluster, before other calls. Errors: invalid_argument for a name
/// that is empty or taken, and for a missing function. Not thread-safe.
expected<void> register_algorithm(const algorithm_definition& added);

/// Names of a kind's algorithms, registered ones included.
std::vector<std::string> algorithm_names(collective_kind kind);

/// The schedule of `request.rank`. Errors: invalid_argument for an unknown name and for a request that the kind or the
/// algorithm refuses. Thread-safe, as are the functions below.
expected<schedule> plan(collective_kind kind, std::string_view algorithm, const plan_request& request);
/// The schedules of all ranks; `request.rank` is ignored. Errors as of `plan`.
expected<std::vector<schedule>> plan_all(collective_kind kind, std::string_view algorithm, const plan_request& request);
/// What the algorithm costs. Errors as of `plan`.
expected<algorithm_cost> cost_of(collective_kind kind, std::string_view algorithm, const plan_request& request);

/// Result of a proof.
struct proof_result {
  bool holds = false;                    ///< The schedules do what the kind says.
  std::string fault{};                   ///< The first fault, with rank, round, step and reason.
  uint32_t rounds = 0;                   ///< Of the schedules.
  std::vector<uint64_t> elements_sent{}; ///< By rank.
  std::vector<uint64_t> messages_sent{}; ///< By rank.
};

/// Whether the schedules of all ranks do what the kind says, on every network and in every order of events: they are
/// run on symbols in place of numbers. A wrong, missing or repeated contribution, a deadlock, a read of memory that was
/// not written and a write to memory that may be read are faults.
proof_result prove(collective_kind kind, const plan_request& request, const std::vector<schedule>& ranks);

} // namespace RINGMASTER_API
