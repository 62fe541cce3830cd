#include "runtime/operations/plan_check.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/schedule/collective.hpp"
#include "runtime/schedule/request_of.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

namespace {

/// Of a plan, or of one of its fused operations.
template <class T>
caf::error check_addresses(const T& x, int ranks) {
  if (x.input_addresses_size() == ranks && x.output_addresses_size() == ranks)
    return caf::none;
  return invalid(fmt::format("a plan for {} ranks has {} input addresses and {} output addresses", ranks,
                             x.input_addresses_size(), x.output_addresses_size()));
}

/// Blocks of fused operations lie one after the other in a block of the whole.
caf::error check_fused(const proto::OperationPlan& plan) {
  const auto& whole = plan.collective();
  auto left = whole.count();
  for (const auto& fused : plan.fused()) {
    RETURN_ERROR(check_addresses(fused, plan.device_ids_size()));
    if (fused.count() > left)
      return invalid(fmt::format("a plan of {} elements has fused operations of more", whole.count()));
    left -= fused.count();
  }
  if (left != 0 || !whole.counts().empty() || plan.joint())
    return invalid("a plan of fused operations has other counts than they have, or is one of shared memory");
  return caf::none;
}

caf::error check_collective(const proto::OperationPlan& plan, uint32_t rank) {
  const auto& what = plan.collective();
  const auto request = request_of(plan, rank);
  RETURN_ERROR(check_request(what.kind(), request));
  const auto element = size_of(what.datatype());
  if (element == 0)
    return invalid(fmt::format("datatype {} is not one of this version's", static_cast<int>(what.datatype())));
  if (std::max(input_count(what.kind(), request, rank), output_count(what.kind(), request, rank))
      > UINT64_MAX / 2 / element)
    return invalid(fmt::format("a plan of {} elements has more bytes than an address can count", what.count()));
  if (what.op() == gpu_sim::PREMUL_SUM && reduces(what.kind()) && what.factors_size() != 1
      && what.factors_size() != plan.device_ids_size())
    return invalid(fmt::format("a plan for {} ranks has {} factors", plan.device_ids_size(), what.factors_size()));
  return caf::none;
}

caf::error check_one(const proto::OperationPlan& plan, uint32_t rank) {
  RETURN_ERROR(check_collective(plan, rank));
  return plan.fused().empty() ? check_addresses(plan, plan.device_ids_size()) : check_fused(plan);
}

} // namespace

caf::error check_plan(const proto::OperationPlan& plan, device_id device, size_t members) {
  const auto& devices = plan.device_ids();
  const auto me = std::ranges::find(devices, device.value);
  if (me == devices.end())
    return invalid(fmt::format("a plan for other devices came to device {:#x}", device));
  if (members != static_cast<size_t>(devices.size()))
    return invalid(fmt::format("a plan for {} ranks came with the handles of {}", devices.size(), members));
  const auto rank = static_cast<uint32_t>(me - devices.begin());
  RETURN_ERROR(check_one(plan, rank));
  for (const auto& next : plan.next()) {
    if (next.comm_id() != plan.comm_id() || next.epoch() != plan.epoch() || next.joint() || plan.joint()
        || !next.next().empty() || !std::ranges::equal(next.device_ids(), devices))
      return invalid("a series of plans has operations of other ranks, another epoch, or of shared memory");
    RETURN_ERROR(check_one(next, rank));
  }
  return caf::none;
}

} // namespace ringmaster
