#include "runtime/algorithms/registry.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/algorithms/catalogue.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/schedule/collective.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

namespace {

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
    return make_error(errc::invalid_argument, fmt::format("the algorithm \"{}\" for {} cannot be registered: {}",
                                                          added.name, name_of(added.kind), why));
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
    return make_error(errc::invalid_argument, fmt::format("there is no algorithm \"{}\" for {}; there are: {}", name,
                                                          name_of(kind), names_of(kind)));
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
