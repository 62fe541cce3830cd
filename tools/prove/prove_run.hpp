#pragma once

#include "runtime/algorithms/registry.hpp"
#include "runtime/proof/proof.hpp"
#include "tools/prove/prove_cases.hpp"

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace ringmaster {

/// The results of an algorithm. Errors start with the request.
struct algorithm_proofs {
  const algorithm* of = nullptr;
  std::vector<uint32_t> worlds;
  uint64_t proofs = 0;
  std::chrono::nanoseconds time{0}; ///< CPU time.
  caf::error fault;                 ///< Of the smallest world with a fault.
  uint64_t declined = 0;            ///< Requests that the algorithm does not support.
  caf::error why_declined;          ///< The first of them, with its reason.
  caf::error cost_fault;            ///< The stated cost differs from the schedules' cost.
};

/// The schedules of all ranks. Errors: as of `plan_all`.
caf::expected<std::vector<schedule>> schedules_of(proto::CollectiveKind kind, std::string_view algorithm,
                                                  const plan_request& request, const prove_options& opts);
addition_order order_of(const prove_options& opts);

/// "4 ranks, count 9, root 2, chunk 1"
std::string text_of(proto::CollectiveKind kind, const plan_request& request);

/// Callbacks for progress, called by one thread at a time.
struct prove_watch {
  std::function<void(double part)> done;            ///< The part of the whole.
  std::function<void(const algorithm_proofs&)> row; ///< A finished algorithm; in the order of `algorithms()`.
};

/// Proves algorithms on `opts.jobs` threads. The result is in the order of `algorithms()`. Errors: invalid_argument if
/// there is nothing to prove.
caf::expected<std::vector<algorithm_proofs>> prove_algorithms(const prove_options& opts, const prove_watch& watch);

} // namespace ringmaster
