// A COMMUNICATOR's operations: what is asked, and who is told to run it.
#include "actors/communicators/communicator.hpp"

#include "actors/calls/request_limit.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/operations/rank_hosts.hpp"
#include "runtime/rank_order/rank_order.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/schedule/request_of.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace ringmaster {

namespace {

/// Of a joint operation: all that goes in or all that comes out, whichever is more.
uint64_t moved_bytes(const operation& op) {
  uint64_t in = 0, out = 0;
  for (auto& slot : op.slots) {
    in += slot.input_bytes;
    out += slot.output_bytes;
  }
  return std::max(in, out);
}

} // namespace

caf::expected<operation> communicator_state::operation_for(const proto::CollectiveRequest& request,
                                                           epoch_number in_epoch) {
  bool of_now = in_epoch == epoch_number{} || epochs_->ranks_in(in_epoch)->size() == epochs_->ranks().size();
  std::vector<rank_device> then;
  if (!of_now)
    then = epochs_->ranks_now(in_epoch);
  auto& world = of_now ? epochs_->ranks() : then;
  auto algorithm = algorithm_for(request.collective(), world.size());
  if (!algorithm)
    return std::move(algorithm.error());
  auto op = make_operation(request, *algorithm, world);
  auto chunk = op ? chunk_of(op->what(), world.size()) : caf::expected<uint64_t>{0};
  if (!chunk)
    return std::move(chunk.error());
  if (op)
    op->plan.mutable_collective()->set_chunk_count(*chunk);
  for (size_t rank = 0; op && rank < then.size(); ++rank)
    if (then[rank].dropped)
      if (auto why = op->drop(then[rank].id()))
        return why;
  return op;
}

caf::expected<sequence_number> communicator_state::enqueue(proto::CollectiveRequest& request, uint64_t rank_group,
                                                           epoch_number in_epoch) {
  if (epochs_->ending())
    return epochs_->end_error();
  if (operations().size() >= options.operations_max)
    return make_error(errc::too_many, fmt::format("communicator {} has {} operations in flight, its limit",
                                                  options.id.value, options.operations_max));
  auto made = operation_for(request, in_epoch);
  if (!made && epochs_->async_error().empty())
    return std::move(made.error());
  if (!made) // the caller may not know that ranks have changed
    return make_error(
      code_of(made.error()),
      fmt::format("{}; in epoch {} the communicator has {} ranks, see GetCommStatus for their devices: {}",
                  render(made.error()), epoch(), epochs_->ranks().size(), epochs_->async_error()));
  bool collected = operations().collects(rank_group), first = operations().nothing_in_flight();
  made->limit = request_limit(request.timeout_ns());
  made->walks_alone = request.walks_alone();
  made->called_ns = outbox_->unix_ns();
  made->may_wait = request.answer_may_wait() && request.timeout_ns() == 0; // with a limit it would end its company, too
  auto& op = operations().add(std::move(*made), rank_group);
  if (outbox_->journals()) {
    proto::Record record;
    auto& enqueued = *record.mutable_operation_enqueued();
    enqueued.set_sequence(op.sequence.value);
    *enqueued.mutable_request() = std::move(request);
    enqueued.set_bytes(op.bytes);
    outbox_->journal(std::move(record));
  }
  if (collected)
    return op.sequence;
  bool by_host = !op.was_called_by_ranks();
  if (first || by_host)
    begin_batch(by_host);
  if (first)
    watch_->note_progress(now());
  limit_operation(op);
  if (can_begin())
    run(op);
  outbox_->flush_later();
  keep_ticking();
  return op.sequence;
}

bool communicator_state::everybody_is_in_reach() const {
  auto& ranks = epochs_->ranks();
  return std::all_of(ranks.begin(), ranks.end(), [&](auto& x) {
    return memories_.count(x.id()) != 0 || handle_of(x.id()).device->node() == self->node();
  });
}

void communicator_state::find_hosts() {
  picks_.forget();
  if (options.devices_a_host == 0) {
    hosts_ = rank_hosts(handles(), options.share_memory);
    return;
  }
  std::vector<uint32_t> told;
  for (auto device : ranks())
    told.push_back(static_cast<uint32_t>(device.value / options.devices_a_host));
  hosts_ = numbered_hosts(told);
}

/// Whether contributions travel apart until one rank has all of them: because the order of additions is fixed, or
/// because partial sums of the datatype could be too large.
bool communicator_state::adds_in_rank_order(const proto::Collective& what) const {
  return (options.deterministic && order_matters(what.kind(), what.datatype(), what.op()))
         || (reduces(what.kind()) && needs_all_inputs(what.datatype(), what.op()));
}

caf::expected<std::string> communicator_state::algorithm_for(const proto::Collective& what, size_t ranks) {
  if (what.algorithm() != "auto")
    return what.algorithm();
  const algorithm* known = nullptr;
  if (options.share_memory && everybody_is_in_reach())
    known = first_shared_memory(what.kind());
  else if (adds_in_rank_order(what))
    known = first_in_rank_order(what.kind()); // what all others keep apart on the way takes more bytes and scratch
  if (known != nullptr)
    return std::string{known->name};
  auto picked = picks_.pick(what.kind(), network_request(what, ranks), size_of(what.datatype()), options.costs);
  if (!picked)
    return std::move(picked.error());
  return std::string{(*picked)->name};
}

caf::expected<uint64_t> communicator_state::chunk_of(const proto::Collective& what, size_t ranks) {
  if (what.chunk_count() != 0 || (options.share_memory && everybody_is_in_reach()))
    return what.chunk_count();
  return picks_.chunk(what.kind(), what.algorithm(), network_request(what, ranks), size_of(what.datatype()),
                      options.costs);
}

plan_request communicator_state::network_request(const proto::Collective& what, size_t ranks) const {
  auto request = request_of(what, static_cast<uint32_t>(ranks), 0);
  if (hosts_.size() == ranks) // else ranks have been lost since the caller's epoch
    request.hosts = hosts_;
  return request;
}

/// Else the ranks walk the schedule, with a shadow where an output lies on an input.
bool communicator_state::can_run_in_shared_memory(const operation& op) const {
  return options.share_memory && is_shared_memory(op.what().kind(), op.what().algorithm()) && op.is_in_its_place()
         && everybody_is_in_reach();
}

void communicator_state::run(operation& op) {
  op.begin(epoch(), static_cast<uint32_t>(epochs_->ranks().size()), outbox_->unix_ns());
  op.joint = can_run_in_shared_memory(op);
  auto plan = op.plan_of_attempt();
  plan.set_joint(op.joint);
  *plan.mutable_rank_hosts() = {hosts_.begin(), hosts_.end()};
  plan.set_rank_order(adds_in_rank_order(op.what()));
  auto latest = outbox_->flush_pending() ? operations().find(outbox_->latest()) : nullptr;
  op.may_wait = op.may_wait && may_wait_for_company(op, latest, may_fuse());
  outbox_->add(std::move(plan), op);
  proto::Record record;
  auto& started = *record.mutable_operation_started();
  started.set_comm_id(options.id.value);
  started.set_epoch(epoch().value);
  started.set_sequence(op.sequence.value);
  started.set_world_size(op.world_size);
  outbox_->journal(std::move(record));
}

void communicator_state::run_waiting() {
  if (!can_begin())
    return;
  for (auto& op : operations().in_flight())
    if (op.attempts == 0)
      run(op);
  flush();
}

void communicator_state::limit_operation(operation& op) {
  if (op.limit.count() == 0)
    return;
  op.limit_number = limit(op.limit);
  limited_operations_.emplace(op.limit_number, op.sequence);
}

void communicator_state::on_report(const proto::RankReports& x) {
  ++control_messages_;
  for (auto& each : x.reports())
    on_report(each);
}

void communicator_state::on_report(const proto::RankReport& x) {
  if (x.phase() != proto::RankReport::FINISHED)
    note_end(x);
  if (!epochs_->counts(x))
    return; // of an epoch that is gone
  watch_->note_progress(now());
  traffic_.heard(device_id{x.device_id()}, epoch_number{x.epoch()}, sequence_number{x.sequence()}, x.received(), now());
  if (x.phase() == proto::RankReport::BROKEN)
    change([&] { return epochs_->reported(x); });
  else
    carry_out(epochs_->reported(x));
}

void communicator_state::note_end(const proto::RankReport& x) {
  auto note = [this](proto::RankReport one) {
    proto::Record record;
    *record.mutable_rank_ended() = std::move(one);
    outbox_->journal(std::move(record));
  };
  if (x.walks().empty())
    return note(x);
  auto one = x;
  one.clear_walks();
  for (auto& walk : x.walks()) {
    one.set_sequence(walk.sequence());
    one.set_started_ns(walk.started_ns());
    one.set_ended_ns(walk.ended_ns());
    one.set_bytes_received(walk.bytes_received());
    note(one);
  }
}

void communicator_state::carry_out(epoch_change::operation_ended& x) {
  auto& op = x.what;
  proto::Record record;
  auto& ended = *record.mutable_operation_ended();
  ended.set_comm_id(options.id.value);
  ended.set_epoch(op.epoch.value);
  ended.set_sequence(op.sequence.value);
  ended.set_status(op.error ? gpu_sim::FAILED : gpu_sim::SUCCESS);
  ended.set_error(op.error ? render(op.error) : "");
  ended.set_started_ns(op.started_ns);
  ended.set_ended_ns(outbox_->unix_ns());
  ended.set_bytes(op.bytes);
  ended.set_attempts(op.attempts);
  ended.set_algorithm(op.what().algorithm());
  ended.set_kind(op.what().kind());
  ended.set_world_size(op.world_size);
  if (op.joint)
    for (auto& slot : op.slots)
      ended.add_device_ids(slot.device.value);
  if (op.joint && !op.error)
    traffic_.moved("joint", moved_bytes(op), now());
  ++(op.error ? failed_ : ended_);
  ended_at_ = now();
  outbox_->journal(std::move(record));
  if (op.error && epochs_->is_of_batch(op))
    error_ = op.error;
  if (!op.error)
    last_kind_ = op.what().kind(), last_ended_ = op.sequence;
  if (op.limit_number != 0) {
    limited_operations_.erase(op.limit_number);
    limits_.remove(op.limit_number);
  }
  desk_->operation_ended(op.sequence, op.error);
  serve_calls();
}

} // namespace ringmaster
