#include "runtime/operations/fusing.hpp"

#include "runtime/algorithms/registry.hpp"
#include "runtime/rank_order/rank_order.hpp"

#include <algorithm>

namespace ringmaster {

namespace {

using operations_together = std::vector<operation*>;

constexpr uint64_t part_bytes_max = 256u << 10; ///< Copying more in and out costs more than its messages.

/// The same collective, whatever its count.
bool same_collective(const proto::Collective& a, const proto::Collective& b) {
  return a.kind() == b.kind() && a.algorithm() == b.algorithm() && a.datatype() == b.datatype() && a.op() == b.op()
         && a.user_op() == b.user_op() && a.chunk_count() == b.chunk_count() && a.root() == b.root()
         && a.peer() == b.peer()
         && std::equal(a.factors().begin(), a.factors().end(), b.factors().begin(), b.factors().end());
}

/// Whether an element's result has the same bits wherever it lies in its block. Otherwise the rounding of a packed call
/// would depend on the calls that are packed with it.
bool place_does_not_matter(const proto::Collective& what) {
  if (what.op() == gpu_sim::USER && reduces(what.kind())) // which operand is the first may matter to it, too
    return false;
  return !order_matters(what.kind(), what.datatype(), what.op()) || is_same_anywhere(what.kind(), what.algorithm());
}

bool may_be_packed(const operation& op, bool deterministic) {
  return op.what().counts().empty() && !op.joint && !op.walks_alone && op.bytes <= part_bytes_max
         && (deterministic || place_does_not_matter(op.what()));
}

bool overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes && a_bytes > 0 && b_bytes > 0;
}

/// Whether `writer` writes `bytes` from `address` on, or in place would once ranks are lost and blocks have moved.
bool writes(const operation& writer, size_t rank, uint64_t address, uint64_t bytes) {
  auto& its = writer.slots[rank];
  return overlap(its.output, its.output_bytes, address, bytes)
         || (writer.in_place() && overlap(its.buffer, writer.bytes, address, bytes));
}

bool reads_what_it_writes(const operation& reader, const operation& writer) {
  for (size_t rank = 0; rank < reader.slots.size(); ++rank)
    if (writes(writer, rank, reader.slots[rank].input, reader.slots[rank].input_bytes))
      return true;
  return false;
}

bool write_the_same(const operation& a, const operation& b) {
  for (size_t rank = 0; rank < a.slots.size(); ++rank)
    if (auto& x = b.slots[rank];
        writes(a, rank, x.output, x.output_bytes) || (b.in_place() && writes(a, rank, x.buffer, b.bytes)))
      return true;
  return false;
}

/// Whether its result may be kept separate until the release.
bool is_kept_separate(const operation& op) {
  return op.in_place() || op.packed_with != sequence_number{};
}

/// Whether they may be in one series: outputs are written during the walk, except for separate ones, which are written
/// at the end and in order.
bool may_be_in_series(const operation& later, const operation& earlier) {
  return !reads_what_it_writes(later, earlier) && !reads_what_it_writes(earlier, later)
         && (!is_kept_separate(earlier) || later.packed_with != sequence_number{} || !write_the_same(later, earlier));
}

bool called_together(const operation& a, const operation& b) {
  return a.group == b.group && (a.group != 0 || (a.may_wait && b.may_wait));
}

uint64_t bytes_of(const operations_together& all) {
  uint64_t result = 0;
  for (auto each : all)
    result += each->bytes;
  return result;
}

/// Whether `op` may be walked as one with operations that are. It may write the output of any of them: all inputs are
/// read before any output is written, and outputs are written in order.
bool can_pack(const operation& op, const operations_together& packed, const fusing_limits& limits) {
  constexpr size_t pieces_max = 4096; // of a rank's buffers: each is copied by itself
  auto& first = *packed.front();
  if (op.packed_with != sequence_number{} || first.attempts > 1)
    return op.packed_with != sequence_number{}
           && op.packed_with == first.packed_with; // as at the first attempt: they have one place in the streams
  return (packed.size() + 1) * op.slots.size() <= pieces_max && called_together(op, first)
         && may_be_packed(op, limits.deterministic) && may_be_packed(first, limits.deterministic)
         && same_collective(op.what(), first.what()) && bytes_of(packed) + op.bytes <= limits.packed_bytes
         && std::none_of(packed.begin(), packed.end(), [&](auto each) { return reads_what_it_writes(op, *each); });
}

proto::OperationBatch pack(proto::OperationBatch batch, operation_queue& operations, const fusing_limits& limits) {
  proto::OperationBatch result;
  auto& plans = *batch.mutable_plans();
  auto at = [&](int i) { return operations.find(sequence_number{plans[i].sequence()}); };
  for (int first = 0, end = 0; first < plans.size(); first = end) {
    operations_together packed{at(first)};
    for (end = first + 1; end < plans.size() && can_pack(*at(end), packed, limits); ++end)
      packed.push_back(at(end));
    auto& plan = *result.add_plans();
    plan = std::move(plans[first]);
    ensure(packed.front() != nullptr, "a plan that is sent is of an operation in flight");
    if (packed.size() == 1 && packed.front()->packed_with == sequence_number{})
      continue;
    plan.mutable_collective()->set_count(0);
    plan.set_joint(false);
    for (int i = first; i < end; ++i) {
      auto& one = i == first ? plan : plans[i];
      auto& op = *packed[static_cast<size_t>(i - first)];
      op.packed_with = packed.front()->sequence;
      if (op.leader == sequence_number{})
        op.leader = op.packed_with;
      op.joint = false;
      ensure(op.leader <= op.sequence, "the leader of fused operations is the first of them");
      auto& part = *plan.add_fused();
      part.set_sequence(op.sequence.value);
      part.set_count(op.what().count());
      part.mutable_input_addresses()->Swap(one.mutable_input_addresses());
      part.mutable_output_addresses()->Swap(one.mutable_output_addresses());
      part.mutable_origin()->Swap(one.mutable_origin());
      plan.mutable_collective()->set_count(plan.collective().count() + part.count());
    }
  }
  return result;
}

operations_together operations_of(const proto::OperationPlan& plan, operation_queue& operations) {
  operations_together result;
  for (auto& part : plan.fused())
    result.push_back(operations.find(sequence_number{part.sequence()}));
  if (result.empty())
    result.push_back(operations.find(sequence_number{plan.sequence()}));
  ensure(std::none_of(result.begin(), result.end(), [](auto x) { return x == nullptr; }),
         "a plan that is sent is of operations in flight");
  return result;
}

/// Whether these, of one plan, may be walked after those.
bool can_follow(const operations_together& next, const operations_together& series, const fusing_limits& limits) {
  auto &op = *next.front(), &first = *series.front();
  if (first.attempts > 1 || op.attempts > 1)
    return op.leader != sequence_number{} && op.leader == first.leader; // as at the first attempt
  if (op.joint || first.joint || !called_together(op, first))
    return false;
  auto separate = [](auto each) { return is_kept_separate(*each); };
  bool some_separate = std::any_of(series.begin(), series.end(), separate)
                       || std::any_of(next.begin(), next.end(), separate);
  if (bytes_of(series) + bytes_of(next) > (some_separate ? limits.shadow_bytes : limits.series_bytes))
    return false;
  return std::all_of(next.begin(), next.end(), [&](auto later) {
    return std::all_of(series.begin(), series.end(), [&](auto earlier) { return may_be_in_series(*later, *earlier); });
  });
}

proto::OperationBatch in_series(proto::OperationBatch batch, operation_queue& operations, const fusing_limits& limits) {
  proto::OperationBatch result;
  operations_together series;
  for (auto& plan : *batch.mutable_plans()) {
    auto next = operations_of(plan, operations);
    auto latest = series.empty() ? nullptr : result.mutable_plans(result.plans_size() - 1);
    if (latest != nullptr && latest->next_size() + 1 < series_plans_max && can_follow(next, series, limits)) {
      series.insert(series.end(), next.begin(), next.end());
      for (auto each : series)
        each->leader = series.front()->sequence, each->joint = false;
      latest->set_joint(false);
      plan.set_joint(false);
      *latest->add_next() = std::move(plan);
      continue;
    }
    series = std::move(next);
    *result.add_plans() = std::move(plan);
  }
  return result;
}

} // namespace

bool may_wait_for_company(const operation& op, const operation* latest, const fusing_limits& limits) {
  auto most = op.in_place() || may_be_packed(op, limits.deterministic) ? limits.shadow_bytes : limits.series_bytes;
  return !op.joint && 2 * op.bytes <= most && (latest == nullptr || may_be_in_series(op, *latest));
}

proto::OperationBatch fuse(proto::OperationBatch batch, operation_queue& operations, const fusing_limits& limits) {
  ensure(limits.packed_bytes <= limits.series_bytes, "what is packed fits a series");
  return in_series(pack(std::move(batch), operations, limits), operations, limits);
}

} // namespace ringmaster
