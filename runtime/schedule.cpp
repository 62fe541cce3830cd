#include "runtime/schedule.hpp"

#include "messages/errc.hpp"
#include "runtime/naive_all_reduce.hpp"
#include "runtime/ring_all_reduce.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

namespace {

/// "ring, naive": what somebody may ask for.
std::string names_of(proto::CollectiveKind kind) {
  std::string names;
  for (const auto& candidate : algorithms())
    if (candidate.kind == kind)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", candidate.name);
  return names;
}

} // namespace

const std::vector<algorithm>& algorithms() {
  static const std::vector<algorithm> all{
    {"ring", proto::ALL_REDUCE, ring_all_reduce_cost, plan_ring_all_reduce},
    {"naive", proto::ALL_REDUCE, naive_all_reduce_cost, plan_naive_all_reduce},
  };
  return all;
}

caf::expected<schedule> plan(proto::CollectiveKind kind, std::string_view algorithm_name,
                             const plan_request& request) {
  const auto& all = algorithms();
  auto chosen = std::find_if(all.begin(), all.end(), [&](const algorithm& x) {
    return x.kind == kind && x.name == algorithm_name;
  });
  if (chosen == all.end())
    return make_error(errc::invalid_argument,
                      fmt::format("there is no algorithm \"{}\" for {}; there are: {}", algorithm_name,
                                  proto::CollectiveKind_Name(kind), names_of(kind)));
  if (request.world_size == 0)
    return make_error(errc::invalid_argument, "a collective wants at least one rank, and the world size is 0");
  if (request.rank >= request.world_size)
    return make_error(errc::invalid_argument,
                      fmt::format("there is no rank {} in a world of {}: ranks are 0 to {}", request.rank,
                                  request.world_size, request.world_size - 1));
  return chosen->plan(request);
}

schedule plan_alone(uint64_t count) {
  schedule result;
  if (count == 0)
    return result;
  result.rounds = 1;
  result.steps.push_back({.what = action::copy,
                          .source = {buffer::input, 0, count},
                          .destination = {buffer::output, 0, count},
                          .finish = true});
  return result;
}

block_range block_of(buffer where, uint64_t count, uint32_t blocks, uint32_t index) {
  auto size = count / blocks;
  auto larger = count % blocks;
  return {where, index * size + std::min<uint64_t>(index, larger), size + (index < larger ? 1 : 0)};
}

} // namespace ringmaster
