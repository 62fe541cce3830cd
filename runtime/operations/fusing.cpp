#include "runtime/operations/fusing.hpp"

#include "runtime/algorithms/registry.hpp"
#include "runtime/rank_order/rank_order.hpp"

#include <algorithm>

namespace ringmaster {

namespace {

constexpr uint64_t part_bytes_max = 256u << 10; ///< Copying more in and out costs more than its messages.

/// But for its count.
bool same_collective(const proto::Collective& a, const proto::Collective& b) {
  return a.kind() == b.kind() && a.algorithm() == b.algorithm() && a.datatype() == b.datatype() && a.op() == b.op()
         && a.user_op() == b.user_op() && a.chunk_count() == b.chunk_count() && a.root() == b.root()
         && a.peer() == b.peer()
         && std::equal(a.factors().begin(), a.factors().end(), b.factors().begin(), b.factors().end());
}

/// Whether an element's result has the same bits wherever it lies in its block: else a fused call's rounding would
/// depend on its company.
bool place_does_not_matter(const proto::Collective& what) {
  if (what.op() == gpu_sim::USER && reduces(what.kind())) // which operand is the first may matter to it, too
    return false;
  return !order_matters(what.kind(), what.datatype(), what.op()) || is_same_anywhere(what.kind(), what.algorithm());
}

bool overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes && a_bytes > 0 && b_bytes > 0;
}

/// Whether `later` reads what `earlier` writes, or in place would write once ranks are lost and blocks have moved. What
/// it writes itself may be anybody's: all inputs are read before any output is written, and outputs are written in
/// order.
bool depends(const operation& later, const operation& earlier) {
  for (size_t rank = 0; rank < later.slots.size(); ++rank) {
    auto &x = earlier.slots[rank], &y = later.slots[rank];
    if (overlap(x.output, x.output_bytes, y.input, y.input_bytes)
        || (earlier.in_place() && overlap(x.buffer, earlier.bytes, y.input, y.input_bytes)))
      return true;
  }
  return false;
}

bool called_together(const operation& a, const operation& b) {
  return a.group == b.group && (a.group != 0 || (a.may_wait && b.may_wait));
}

/// Whether `op` may be walked as one with those, which are.
bool can_fuse(const operation& op, const std::vector<operation*>& fused, bool deterministic, uint64_t bytes_max) {
  constexpr size_t pieces_max = 4096; // of a rank's buffers: each is copied by itself
  auto& leader = *fused.front();
  if (op.leader != sequence_number{} || leader.attempts > 1)
    return op.leader != sequence_number{}
           && op.leader == leader.sequence; // as at the first attempt: they have one place in the streams
  uint64_t bytes = op.bytes;
  for (auto each : fused)
    bytes += each->bytes;
  return (fused.size() + 1) * op.slots.size() <= pieces_max && called_together(op, leader)
         && may_be_fused(op, deterministic) && may_be_fused(leader, deterministic)
         && same_collective(op.what(), leader.what()) && bytes <= bytes_max
         && std::none_of(fused.begin(), fused.end(), [&](auto each) { return depends(op, *each); });
}

} // namespace

bool may_be_fused(const operation& op, bool deterministic) {
  return op.what().counts().empty() && !op.joint && op.bytes <= part_bytes_max
         && (deterministic || place_does_not_matter(op.what()));
}

bool may_follow(const operation& op, const operation& earlier) {
  return same_collective(op.what(), earlier.what()) && !depends(op, earlier);
}

proto::OperationBatch fuse(proto::OperationBatch batch, operation_queue& operations, bool deterministic,
                           uint64_t bytes_max) {
  proto::OperationBatch result;
  auto& plans = *batch.mutable_plans();
  for (int first = 0, end = 0; first < plans.size(); first = end) {
    std::vector<operation*> fused{operations.find(sequence_number{plans[first].sequence()})};
    for (end = first + 1;
         end < plans.size()
         && can_fuse(*operations.find(sequence_number{plans[end].sequence()}), fused, deterministic, bytes_max);
         ++end)
      fused.push_back(operations.find(sequence_number{plans[end].sequence()}));
    auto& plan = *result.add_plans();
    plan = std::move(plans[first]);
    if (fused.size() == 1 && fused.front()->leader == sequence_number{})
      continue;
    plan.mutable_collective()->set_count(0);
    plan.set_joint(false);
    for (int i = first; i < end; ++i) {
      auto& one = i == first ? plan : plans[i];
      auto& op = *fused[static_cast<size_t>(i - first)];
      op.leader = fused.front()->sequence;
      op.joint = false;
      auto& part = *plan.add_fused();
      part.set_sequence(op.sequence.value);
      part.set_count(op.what().count());
      part.mutable_input_addresses()->Swap(one.mutable_input_addresses());
      part.mutable_output_addresses()->Swap(one.mutable_output_addresses());
      plan.mutable_collective()->set_count(plan.collective().count() + part.count());
    }
  }
  return result;
}

} // namespace ringmaster
