#pragma once

#include "runtime/algorithms/parts/algorithm_cost.hpp"

#include <caf/expected.hpp>

#include <string_view>
#include <vector>

namespace ringmaster {

/// An algorithm's other properties. Only users select an algorithm by name; code asks for properties.
struct algorithm_facts {
  /// Where all ranks lie on one host, whose memory a process reaches, their data is moved for all of them at once, as
  /// `shared_memory_execution` does, and no rank walks a schedule. Its result must have the same bits.
  bool joint = false;
  /// An element's result has the same bits wherever it lies in its block (of a kind without blocks, in the buffer): its
  /// operands are always added in one order. So small operations can be made one, whose rounding does not depend on its
  /// company.
  bool same_anywhere = false;
  /// Adds in the order of the ranks by itself, so that deterministic mode keeps nothing apart on the way: of the kind's
  /// algorithms it takes the least scratch there.
  bool in_rank_order = false;
  /// It is what the course protocol's own call, AllReduceRing, runs.
  bool course_call = false;
  /// Cuts what it moves into pieces of `plan_request::chunk`, which all others pass over.
  bool in_chunks = false;
  /// Its schedule depends on `plan_request::hosts`, which all others pass over.
  bool by_hosts = false;
};

/// A collective algorithm: a pure function from the request to the rank's schedule. It is asked for two ranks or more
/// and at least one element somewhere, and for a request that `check_request` has passed.
struct algorithm {
  std::string_view name;
  proto::CollectiveKind kind;
  std::string_view formula; ///< Rounds and elements at the busiest rank, for people.
  schedule (*plan)(const plan_request&);
  algorithm_cost (*cost)(const plan_request&); ///< The rank does not matter.
  /// Errors: why the algorithm cannot honour the request, whatever the rank. nullptr: it takes all.
  caf::error (*check)(const plan_request&) = nullptr;
  algorithm_facts is = {};
};

/// All algorithms, in the order in which they are listed to people.
const std::vector<algorithm>& algorithms();

/// Adds an algorithm to `algorithms()`: from then on it is found, planned and proved as those that are built in. Its
/// name and formula must stay where they are. Called when a program starts, before anything else looks at the
/// algorithms: pointers to them do not outlive it. Errors: invalid_argument for a name that is empty or that the kind
/// has already, and for a missing function.
caf::error register_algorithm(const algorithm& added);

/// Errors: invalid_argument; the text names the algorithms that the kind has.
caf::expected<const algorithm*> find_algorithm(proto::CollectiveKind kind, std::string_view name);

/// The same, if it can do what the request asks. Errors also for what `check_request` or the algorithm refuses.
caf::expected<const algorithm*> find_algorithm(proto::CollectiveKind kind, std::string_view name,
                                               const plan_request& request);

/// Whether there is such an algorithm that is so.
bool is_shared_memory(proto::CollectiveKind kind, std::string_view name);
bool is_same_anywhere(proto::CollectiveKind kind, std::string_view name);

/// What "auto" is where all ranks lie on one host, and where the order of the ranks counts: the kind's first that is
/// one of joint operations, or in rank order. nullptr where none is.
const algorithm* first_shared_memory(proto::CollectiveKind kind);
const algorithm* first_in_rank_order(proto::CollectiveKind kind);

/// What the course protocol's own call is. There is always one.
const algorithm& course_algorithm();

/// The schedule of `request.rank`. One rank alone copies its input; a collective without elements does nothing. Errors:
/// invalid_argument for an unknown algorithm and for what `check_request` or the algorithm refuses.
caf::expected<schedule> plan(proto::CollectiveKind kind, std::string_view algorithm_name, const plan_request& request);

/// The schedules of all ranks; the request's own does not matter. Errors as of `plan`.
caf::expected<std::vector<schedule>> plan_all(proto::CollectiveKind kind, std::string_view algorithm_name,
                                              plan_request request);

/// Errors as of `plan`.
caf::expected<algorithm_cost> cost_of(proto::CollectiveKind kind, std::string_view algorithm_name,
                                      const plan_request& request);

} // namespace ringmaster
