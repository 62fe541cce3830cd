#include "runtime/epochs/communicator_recovery.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/schedule/collective.hpp"
#include "runtime/schedule/request_of.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace ringmaster {

namespace {

using recalled = proto::RecalledCommunicator;

/// Operations whose plans came as one, and how far each rank is with them.
struct known_series {
  const proto::OperationPlan* plan = nullptr;
  std::map<device_id, recalled::Phase> phases;

  sequence_number last() const {
    auto& latest = plan->next().empty() ? *plan : *plan->next().rbegin();
    return sequence_number{latest.fused().empty() ? latest.sequence() : latest.fused().rbegin()->sequence()};
  }
};

/// What the marks of shared-memory operations say.
struct moved_data {
  sequence_number moving, moved;
  bool is_certain = true; ///< The marks cannot be on a rank that is lost.
};

class recovery {
public:
  recovery(const proto::StoredCommunicator& stored, const std::map<device_id, recalled>& devices)
    : stored_(stored), devices_(devices) {}

  recovered_communicator result() {
    find_ranks();
    collect();
    for (auto& [first, series] : series_)
      add(series);
    add_ended_calls();
    add_batch();
    if (out_.operations.empty())
      find_spares();
    return std::move(out_);
  }

private:
  void find_ranks() {
    uint64_t members_epoch = 0;
    const auto* members = &stored_.devices();
    for (auto& [device, its] : devices_) {
      out_.epoch = std::max(out_.epoch, epoch_number{its.epoch()});
      if (its.members_epoch() <= members_epoch || its.members().empty())
        continue;
      members_epoch = its.members_epoch();
      members = &its.members();
    }
    out_.epoch = std::max(out_.epoch, epoch_number{2}); // the first was open before
    for (auto& x : *members) {
      out_.ranks.push_back({x, false, false});
      if (!devices_.contains(id_of(x)))
        out_.lost.push_back(id_of(x));
    }
  }

  void collect() {
    marks_.is_certain = out_.lost.empty();
    for (auto& [device, its] : devices_) {
      ended_ = std::max(ended_, sequence_number{its.ended()});
      marks_.moving = std::max(marks_.moving, sequence_number{its.moving()});
      marks_.moved = std::max(marks_.moved, sequence_number{its.moved()});
      for (auto& command : its.commands()) {
        auto& series = series_[sequence_number{command.plan().sequence()}];
        if (series.plan == nullptr || series.plan->epoch() < command.plan().epoch())
          series.plan = &command.plan();
        series.phases[device] = command.phase();
      }
    }
    out_.latest = ended_;
  }

  bool is_decided(const known_series& x) const {
    if (ended_ >= x.last() || (x.plan->joint() && marks_.moved >= x.last()))
      return true;
    return std::ranges::any_of(x.phases, [](auto& y) { return y.second == recalled::COMMITTING; });
  }

  /// Whether the communicator may have begun to move its data.
  bool may_have_moved(const known_series& x) const {
    if (!x.plan->joint() || is_decided(x))
      return false;
    if (marks_.is_certain)
      return marks_.moving >= x.last();
    return std::ranges::all_of(x.phases, [](auto& y) { return y.second == recalled::ARRIVED; });
  }

  void add(const known_series& x) {
    out_.latest = std::max(out_.latest, x.last());
    add(x, *x.plan);
    for (auto& plan : x.plan->next())
      add(x, plan);
  }

  void add(const known_series& x, const proto::OperationPlan& plan) {
    if (plan.fused().empty())
      return add(x, plan, nullptr);
    for (auto& packed : plan.fused())
      add(x, plan, &packed);
  }

  void add(const known_series& x, const proto::OperationPlan& plan, const proto::FusedPart* packed) {
    operation op;
    op.plan = plan;
    op.plan.clear_epoch();
    op.plan.clear_sequence();
    op.plan.clear_device_ids();
    op.plan.clear_input_addresses();
    op.plan.clear_output_addresses();
    op.plan.clear_joint();
    op.plan.clear_rank_order();
    op.plan.clear_fused();
    op.plan.clear_rank_hosts();
    op.plan.clear_next();
    if (packed != nullptr) {
      op.plan.mutable_collective()->set_count(packed->count());
      *op.plan.mutable_origin() = packed->origin();
    }
    op.sequence = sequence_number{packed == nullptr ? plan.sequence() : packed->sequence()};
    const auto& inputs = packed == nullptr ? plan.input_addresses() : packed->input_addresses();
    const auto& outputs = packed == nullptr ? plan.output_addresses() : packed->output_addresses();
    add_slots(op, plan, inputs, outputs);
    op.epoch = epoch_number{plan.epoch()};
    op.world_size = static_cast<uint32_t>(plan.device_ids_size());
    op.attempts = 1;
    op.limit = std::chrono::nanoseconds{op.plan.origin().limit_ns()};
    op.called_ns = op.plan.origin().called_ns();
    op.group = op.plan.origin().group();
    if (packed != nullptr)
      op.packed_with = sequence_number{plan.fused(0).sequence()};
    if (packed != nullptr || !x.plan->next().empty())
      op.leader = sequence_number{x.plan->fused().empty() ? x.plan->sequence() : x.plan->fused(0).sequence()};
    if (is_decided(x))
      decide(op, x);
    else if (may_have_moved(x) && (op.in_place() || marks_.moving != x.last() || !marks_.is_certain))
      cancel(op, make_error(errc::aborted, "the coordinator's process ended while it moved the data of this operation: "
                                           "inputs may be overwritten in part"));
    note_calls(op);
    drop_former_ranks(op);
    out_.operations.push_back(std::move(op));
  }

  /// All operations have ended. A rank whose stream has not seen the last one end was not a member then.
  void find_spares() {
    for (auto& x : out_.ranks)
      if (const auto its = devices_.find(x.id());
          its != devices_.end() && sequence_number{its->second.ended()} < ended_)
        out_.without_results.push_back(x.id());
  }

  void add_slots(operation& op, const proto::OperationPlan& plan,
                 const google::protobuf::RepeatedField<uint64_t>& inputs,
                 const google::protobuf::RepeatedField<uint64_t>& outputs) const {
    const auto ranks = static_cast<uint32_t>(plan.device_ids_size());
    const auto world = request_of(op.what(), ranks, 0);
    const auto element = size_of(op.what().datatype());
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const auto at = static_cast<int>(rank);
      operation::slot x{device_id{plan.device_ids(at)}, inputs.Get(at), outputs.Get(at), 0, 0, 0};
      if (op.in_place())
        x.buffer = x.input - in_place(op.what().kind(), world, rank).input * element;
      op.slots.push_back(x);
    }
    op.lay_out();
    for (auto& x : op.slots)
      op.bytes = std::max({op.bytes, x.input_bytes, x.output_bytes});
  }

  /// The ranks that have their result: others have put theirs in place, or are lost.
  void decide(operation& op, const known_series& x) const {
    op.state = operation::phase::decided;
    for (auto& slot : op.slots) {
      op.finished.insert(slot.device);
      const auto its = devices_.find(slot.device);
      const auto phase = x.phases.find(slot.device);
      const bool is_done = its == devices_.end() || sequence_number{its->second.ended()} >= op.sequence
                           || phase == x.phases.end() || phase->second == recalled::ARRIVED;
      if (is_done)
        op.committed.insert(slot.device);
    }
  }

  static void cancel(operation& op, const caf::error& why) {
    op.state = operation::phase::cancelled;
    op.error = with_context(fmt::format("operation #{}", op.sequence), why);
  }

  /// Ranks that the latest epoch does not have: they were lost, and the operation was to run again without them.
  void drop_former_ranks(operation& op) const {
    if (op.state != operation::phase::running)
      return;
    const auto slots = op.slots;
    for (auto& x : slots)
      if (std::ranges::none_of(out_.ranks, [&](auto& y) { return y.id() == x.device; }))
        if (auto why = op.drop(x.device)) {
          cancel(op, why);
          return;
        }
  }

  void note_calls(const operation& op) {
    auto& origin = op.plan.origin();
    if (origin.has_host())
      out_.host_calls.push_back({{origin.host().caller(), origin.host().number()}, op.sequence});
    for (int i = 0; i < std::min(origin.ranks_size(), origin.rank_devices_size()); ++i) {
      const device_id device{origin.rank_devices(i)};
      rank_call_of(device, origin.ranks(i)).sequences.push_back(op.sequence);
    }
  }

  recovered_communicator::rank_call& rank_call_of(device_id device, const proto::CallId& id) {
    const call_key call{id.caller(), id.number()};
    const auto known = std::ranges::find_if(out_.rank_calls,
                                            [&](auto& x) { return x.device == device && x.call == call; });
    if (known != out_.rank_calls.end())
      return *known;
    out_.rank_calls.push_back({device, call, {}, false});
    return out_.rank_calls.back();
  }

  void add_ended_calls() {
    std::set<call_key> known;
    for (auto& x : out_.host_calls)
      known.insert(x.first);
    for (auto& [device, its] : devices_) {
      for (auto& x : its.host_calls())
        if (call_key key{x.call().caller(), x.call().number()}; known.insert(key).second)
          out_.host_calls.push_back({key, sequence_number{x.sequence()}});
      for (auto& x : its.rank_calls())
        rank_call_of(device, x);
      for (auto& x : its.failed_calls())
        if (std::ranges::find(out_.operations, sequence_number{x.sequence()}, &operation::sequence)
            == out_.operations.end()) // else another stream has not dropped it yet: it runs again
          rank_call_of(device_id{x.device_id()}, x.call()).has_failed = true;
    }
  }

  /// What the host has not heard of, or may not have.
  void add_batch() {
    for (auto& op : out_.operations)
      out_.batch = std::max(out_.batch, op.plan.origin().batch());
    for (auto& [device, its] : devices_)
      out_.batch = std::max(out_.batch, its.batch());
    for (auto& [device, its] : devices_) {
      const sequence_number failed{its.failed_in_batch()};
      out_.latest = std::max(out_.latest, failed);
      const bool runs_again = std::ranges::find(out_.operations, failed, &operation::sequence) != out_.operations.end();
      if (its.batch() == out_.batch && !runs_again) // else another stream has not dropped it yet
        out_.failed_in_batch = std::max(out_.failed_in_batch, failed);
    }
  }

  const proto::StoredCommunicator& stored_;
  const std::map<device_id, recalled>& devices_;
  recovered_communicator out_;
  std::map<sequence_number, known_series> series_; ///< By the first operation.
  sequence_number ended_;
  moved_data marks_;
};

} // namespace

recovered_communicator recover(const proto::StoredCommunicator& stored,
                               const std::map<device_id, proto::RecalledCommunicator>& devices) {
  auto result = recovery{stored, devices}.result();
  ensure(std::ranges::is_sorted(result.operations, {}, &operation::sequence),
         "operations are in the order of their calls");
  return result;
}

} // namespace ringmaster
