#include "runtime/selection/process_costs.hpp"

#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>

namespace ringmaster {

namespace {

struct round_work {
  double messages = 0, copied = 0, reduced = 0;
};

void add(round_work& work, const step& x, uint64_t element_bytes) {
  if (x.what == action::send || x.what == action::recv || x.what == action::recv_reduce)
    work.messages += 1;
  auto bytes = static_cast<double>(x.destination.count * element_bytes);
  if (x.what == action::recv || x.what == action::copy)
    work.copied += bytes;
  if (x.what == action::recv_reduce || x.what == action::reduce)
    work.reduced += bytes;
}

void take_in(round_work& all, round_work& busiest, const round_work& mine) {
  all = {all.messages + mine.messages, all.copied + mine.copied, all.reduced + mine.reduced};
  busiest = {std::max(busiest.messages, mine.messages), std::max(busiest.copied, mine.copied),
             std::max(busiest.reduced, mine.reduced)};
}

double bytes_of_all(proto::CollectiveKind kind, const plan_request& request, uint64_t element_bytes) {
  double elements = 0;
  for (uint32_t rank = 0; rank < request.world_size; ++rank)
    elements += static_cast<double>(input_count(kind, request, rank) + output_count(kind, request, rank));
  return elements * static_cast<double>(element_bytes);
}

} // namespace

std::vector<double> process_work::features() const {
  if (joint)
    return {1, ranks, bytes};
  return {1, ranks, steps, messages, copied_bytes, reduced_bytes, traffic_bytes};
}

caf::expected<process_work> work_in_process(const algorithm& which, const plan_request& request, uint64_t element_bytes,
                                            const process_constants& machine) {
  constexpr double copy_accesses = 2, reduce_accesses = 3; // of each byte: operands read, result written
  ensure(machine.cores > 0, "a machine has cores");
  process_work result;
  result.ranks = request.world_size;
  if (which.is.joint) {
    result.joint = true;
    result.bytes = bytes_of_all(which.kind, request, element_bytes);
    return result;
  }
  std::vector<round_work> all, busiest;
  for (uint32_t rank = 0; rank < request.world_size; ++rank) {
    auto mine = request;
    mine.rank = rank;
    TRY(planned, plan(which.kind, which.name, mine));
    all.resize(std::max<size_t>(all.size(), planned->rounds));
    busiest.resize(all.size());
    for (auto x = planned->steps.begin(); x != planned->steps.end();) {
      round_work work;
      auto round = x->round;
      for (; x != planned->steps.end() && x->round == round; ++x)
        add(work, *x, element_bytes);
      take_in(all[round], busiest[round], work);
    }
  }
  ensure(all.size() == busiest.size(), "each round has a busiest rank");
  result.steps = static_cast<double>(all.size());
  auto buffers = bytes_of_all(which.kind, request, element_bytes);
  auto misses = buffers == 0 ? 0 : std::max(0.0, 1 - static_cast<double>(machine.cache_bytes) / buffers);
  for (size_t i = 0; i < all.size(); ++i) {
    result.messages += std::max(all[i].messages / machine.cores, busiest[i].messages);
    result.copied_bytes += std::max(all[i].copied / machine.cores, busiest[i].copied);
    result.reduced_bytes += std::max(all[i].reduced / machine.cores, busiest[i].reduced);
    result.traffic_bytes += misses * (copy_accesses * all[i].copied + reduce_accesses * all[i].reduced);
  }
  return result;
}

time_estimate estimate(const process_work& work, const process_constants& x) {
  ensure(x.bandwidth > 0 && x.memory_bandwidth > 0 && x.reduction_rate > 0 && x.joint.bandwidth > 0,
         "rates are above 0");
  time_estimate result;
  if (work.joint) {
    result.overhead_s = x.joint.operation_s + work.ranks * x.joint.rank_s;
    result.transfer_s = work.bytes / x.joint.bandwidth;
    return result;
  }
  result.overhead_s = x.operation_s + work.ranks * x.rank_s;
  result.latency_s = work.steps * x.step_s + work.messages * x.message_s;
  result.transfer_s = work.copied_bytes / x.bandwidth + work.traffic_bytes / x.memory_bandwidth;
  result.reduction_s = work.reduced_bytes / x.reduction_rate;
  return result;
}

caf::expected<std::vector<candidate>> candidates_in_process(
  proto::CollectiveKind kind, const plan_request& request, uint64_t element_bytes, const process_constants& constants) {
  return sorted_candidates(kind, request, [&](const algorithm& which) -> caf::expected<candidate> {
    TRY(cost, cost_of(kind, which.name, request));
    TRY(work, work_in_process(which, request, element_bytes, constants));
    return candidate{&which, *cost, estimate(*work, constants)};
  });
}

} // namespace ringmaster
