// A COMMUNICATOR's operations: what is asked, who runs it, when its outcome is certain.
#include "actors/communicators/communicator.hpp"

#include "actors/calls/request_limit.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/rank_order/rank_order.hpp"
#include "runtime/reduction/reduction.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringmaster {

caf::expected<operation> communicator_state::operation_for(const proto::CollectiveRequest& request, uint64_t call_epoch) {
  bool of_now = call_epoch == 0 || history_.at(call_epoch).size() == members.size();
  std::vector<member> then;
  if (!of_now)
    for (auto& device : history_.at(call_epoch)) {
      auto now = std::find_if(members.begin(), members.end(),
                              [&](auto& x) { return x.id() == device.deviceid().value(); });
      then.push_back({device, now == members.end() ? device_handle{} : now->handle, suspicion{options.suspect}, {}});
    }
  auto& world = of_now ? members : then;
  auto algorithm = algorithm_for(request, world.size());
  if (!algorithm)
    return std::move(algorithm.error());
  auto op = make_operation(request, *algorithm, world);
  for (size_t rank = 0; op && rank < then.size(); ++rank)
    if (then[rank].handle.device == nullptr)
      if (auto why = op->drop(then[rank].id()); !why.empty())
        return make_error(errc::device_lost, why);
  return op;
}

caf::expected<uint64_t> communicator_state::enqueue(proto::CollectiveRequest& request, const operation_caller& by) {
  if (state == phase::aborted || state == phase::ending)
    return make_error(errc::aborted, async_error_);
  if (operations_.size() + group_.size() >= options.operations_max)
    return make_error(errc::too_many, fmt::format("communicator {} has {} operations in flight, its limit", options.id.value,
                                                  options.operations_max));
  auto op = operation_for(request, by.epoch);
  if (!op && async_error_.empty())
    return std::move(op.error());
  if (!op) // the caller may not know that ranks have changed
    return make_error(code_of(op.error()),
                      fmt::format("{}; in epoch {} the communicator has {} ranks, see GetCommStatus for their devices: {}",
                                  render(op.error()), epoch, members.size(), async_error_));
  op->sequence = ++sequences_;
  op->limit = request_limit(request.timeout_ns());
  if (options.journal) {
    proto::Record record;
    auto& enqueued = *record.mutable_operation_enqueued();
    enqueued.set_sequence(op->sequence);
    *enqueued.mutable_request() = std::move(request);
    enqueued.set_bytes(op->bytes);
    journal(std::move(record));
  }
  op->group = by.rank_group;
  if (group_open_ && by.rank_group == 0) {
    group_.push_back(std::move(*op));
    return sequences_;
  }
  if (operations_.empty()) {
    error_.clear();
    last_progress_ = self->clock().now();
  }
  operations_.push_back(std::move(*op));
  limit_operation(operations_.back());
  if (state == phase::active)
    run(operations_.back());
  if (batch_.plans_size() > 0 && !std::exchange(flush_pending_, true))
    self->send(self, atom::flush_v); // behind the calls that are in the mailbox already
  keep_ticking();
  return sequences_;
}

caf::expected<std::string> communicator_state::algorithm_for(const proto::CollectiveRequest& request,
                                                                 size_t ranks) const {
  if (request.algorithm() != "auto")
    return request.algorithm();
  const algorithm* known = nullptr;
  if (options.share_memory && everybody_is_here())
    known = first_served_together(request.kind());
  else if (options.deterministic && order_matters(request.kind(), request.datatype(), request.op()))
    known = first_in_rank_order(request.kind()); // what all others keep apart on the way takes more bytes and scratch
  if (known != nullptr)
    return std::string{known->name};
  plan_request world{.world_size = static_cast<uint32_t>(ranks),
                     .count = request.count(),
                     .root = request.root(),
                     .peer = request.peer(),
                     .counts = {request.counts().begin(), request.counts().end()},
                     .chunk = request.chunk_count()};
  auto picked = select_algorithm(request.kind(), world, size_of(request.datatype()), options.costs);
  if (!picked)
    return std::move(picked.error());
  return std::string{picked->which->name};
}

void communicator_state::run(operation& op) {
  op.epoch = epoch;
  op.world_size = static_cast<uint32_t>(members.size());
  op.started_ns = unix_ns();
  op.finished.clear();
  ++op.attempts;
  op.lay_out();
  may_fuse_ = may_fuse_ || op.group != 0;
  auto& plan = *batch_.add_plans();
  plan = op.plan;
  plan.set_epoch(epoch);
  plan.set_sequence(op.sequence);
  plan.set_together(can_run_together(op));
  plan.set_rank_order(options.deterministic && order_matters(plan.kind(), plan.datatype(), plan.op()));
  op.together = plan.together();
  for (auto addresses : {plan.mutable_device_ids(), plan.mutable_input_addresses(), plan.mutable_output_addresses()})
    addresses->Reserve(static_cast<int>(op.slots.size()));
  for (auto& x : op.slots) {
    plan.add_device_ids(x.device);
    plan.add_input_addresses(x.input);
    plan.add_output_addresses(x.output);
  }
  proto::Record record;
  auto& started = *record.mutable_operation_started();
  started.set_comm_id(options.id.value);
  started.set_epoch(epoch);
  started.set_sequence(op.sequence);
  started.set_world_size(op.world_size);
  journal(std::move(record));
}

void communicator_state::flush_plans() {
  flush_pending_ = false;
  if (batch_.plans_size() > 0) {
    if (std::exchange(may_fuse_, false))
      fuse_batch();
    device_handles handles;
    for (auto& x : members)
      handles.push_back(x.handle);
    auto order = caf::make_message(
      operation_orders{std::make_shared<const proto::OperationBatch>(std::exchange(batch_, {})),
                       std::make_shared<const device_handles>(std::move(handles))}); // one message for all ranks
    std::scoped_lock lock{*options.enqueue_order};
    for (auto& x : members)
      if (!lost(x.id()))
        tell(x.handle.stream, order);
  }
  flush_records();
  for (auto& [answer, promise] : std::exchange(answers_, {}))
    promise.deliver(std::move(answer));
}

void communicator_state::answer_when_flushed(proto::CollectiveResponse answer,
                                             caf::typed_response_promise<proto::CollectiveResponse> promise) {
  answers_.emplace_back(std::move(answer), std::move(promise));
}

operation* communicator_state::find(uint64_t sequence) {
  auto i = std::find_if(operations_.begin(), operations_.end(),
                        [=](auto& op) { return op.sequence == sequence; });
  return i == operations_.end() ? nullptr : &*i;
}

void communicator_state::limit_operation(operation& op) {
  if (op.limit.count() == 0)
    return;
  op.limit_number = limit(op.limit);
  limited_operations_.emplace(op.limit_number, op.sequence);
}

void communicator_state::end_late(const std::vector<uint64_t>& sequences, const std::string& limit_text) {
  std::vector<uint64_t> cancelled;
  auto doing = explain();
  for (auto sequence : sequences)
    if (auto op = find(sequence); op != nullptr && op->state == operation::phase::running) {
      cancel(*op, fmt::format("operation #{} has not ended within {}: {}", sequence, limit_text, doing));
      cancelled.push_back(sequence);
    }
  // Streams that are being stopped have not been told that these are cancelled: once more, with a higher epoch.
  if (!cancelled.empty() && (state == phase::active || state == phase::quiescing))
    quiesce(fmt::format("operation #{} took too long", fmt::join(cancelled, ", #")));
}

void communicator_state::on_report(const proto::RankReport& x) {
  if (x.phase() != proto::RankReport::FINISHED) { // each rank's end, one way or the other
    proto::Record record;
    *record.mutable_rank_ended() = x;
    journal(std::move(record));
  }
  auto op = find(x.sequence());
  if (op == nullptr || op->epoch != x.epoch() || x.phase() == proto::RankReport::INTERRUPTED)
    return; // of an epoch that is gone
  last_progress_ = self->clock().now();
  if (x.phase() == proto::RankReport::BROKEN) {
    if (op->state != operation::phase::running)
      return;
    cancel(*op, fmt::format("rank {} (device 0x{:x}): {}", x.rank(), x.device_id(), x.error()));
    quiesce(fmt::format("operation #{} failed", op->sequence));
    return;
  }
  bool decided = false;
  for (auto each : fused_with(*op))
    if (x.phase() == proto::RankReport::COMMITTED) {
      each->committed.insert(x.device_id());
    } else {
      each->finished.insert(x.device_id());
      if (each->state == operation::phase::running && each->finished.size() == each->slots.size()) {
        each->state = operation::phase::decided;
        tell_written(*each);
        decided = true;
      }
    }
  if (decided) {
    proto::Release release;
    release.set_comm_id(options.id.value);
    release.set_epoch(epoch);
    release.set_sequence(op->sequence);
    for (auto& rank : members)
      self->send(caf::actor_cast<stream_actor>(rank.handle.stream), release);
  }
  check_decided();
  finish_ending();
}

void communicator_state::check_decided() {
  std::vector<uint64_t> ended;
  for (auto& op : operations_)
    if (op.state == operation::phase::decided && op.sequence != moving_.sequence
        && std::all_of(members.begin(), members.end(), [&](auto& x) {
             return lost(x.id()) || op.finished.count(x.id()) == 0 || op.committed.count(x.id()) != 0;
           }))
      ended.push_back(op.sequence);
  for (auto sequence : ended)
    end(sequence, {});
}

void communicator_state::tell_written(const operation& op) {
  if (!options.coordinator || options.policy != proto::REPLACE) // else no copies are kept
    return;
  proto::OutputsWritten written;
  for (auto& x : op.slots) {
    auto& range = *written.add_ranges();
    range.set_device_id(x.device);
    range.set_address(x.output);
    range.set_bytes(x.output_bytes);
  }
  self->send(options.coordinator, std::move(written));
}

void communicator_state::end_cancelled() {
  std::vector<std::pair<uint64_t, std::string>> cancelled;
  for (auto& op : operations_)
    if (op.state == operation::phase::cancelled)
      cancelled.emplace_back(op.sequence, op.error);
  for (auto& [sequence, error] : cancelled)
    end(sequence, error);
}

void communicator_state::end(uint64_t sequence, const std::string& error) {
  auto i = std::find_if(operations_.begin(), operations_.end(),
                        [=](auto& op) { return op.sequence == sequence; });
  proto::Record record;
  auto& ended = *record.mutable_operation_ended();
  ended.set_comm_id(options.id.value);
  ended.set_epoch(i->epoch == 0 ? epoch : i->epoch);
  ended.set_sequence(sequence);
  ended.set_status(error.empty() ? gpu_sim::SUCCESS : gpu_sim::FAILED);
  ended.set_error(error);
  ended.set_started_ns(i->started_ns);
  ended.set_ended_ns(unix_ns());
  ended.set_bytes(i->bytes);
  ended.set_attempts(i->attempts);
  ended.set_algorithm(i->plan.algorithm());
  ended.set_kind(i->plan.kind());
  ended.set_world_size(i->world_size);
  if (i->together)
    ended.mutable_device_ids()->Reserve(static_cast<int>(i->slots.size()));
  if (i->together)
    for (auto& x : i->slots)
      ended.add_device_ids(x.device);
  journal(std::move(record));
  if (!error.empty())
    error_ = error;
  else
    last_kind_ = i->plan.kind(), last_ended_ = sequence;
  if (!error.empty() && i->attempts > 0 && !(i->in_place() && replaces_input(i->plan.kind())))
    tell_written(*i); // in part
  if (i->limit_number != 0) {
    limited_operations_.erase(i->limit_number);
    limits_.remove(i->limit_number);
  }
  operations_.erase(i);
  called_operation_ended(sequence, error);
  settle();
}

} // namespace ringmaster
