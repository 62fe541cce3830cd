#include "actors/communicators/outbox.hpp"

#include "runtime/invariants/ensure.hpp"

namespace ringmaster {

void outbox::journal(proto::Record record) {
  if (!journal_)
    return;
  record.set_time_ns(unix_ns());
  *records_.add_records() = std::move(record);
  if (!flush_asked_ && !gathering_)
    flush_records();
}

void outbox::gather_records(bool on) {
  gathering_ = on;
  if (!on && !flush_asked_)
    flush_records();
}

void outbox::flush_records() {
  if (records_.records_size() > 0)
    self_->send(journal_, std::exchange(records_, {}));
}

void outbox::add(proto::OperationPlan plan, const operation& op) {
  ensure(plan.epoch() == op.epoch.value && plan.sequence() == op.sequence.value, "a plan is of its operation");
  may_fuse_ = may_fuse_ || op.group != 0 || op.may_wait || op.leader != sequence_number{};
  may_wait_ = op.may_wait && (may_wait_ || !flush_pending());
  *batch_.add_plans() = std::move(plan);
}

void outbox::flush_later() {
  if (flush_pending() && !std::exchange(flush_asked_, true))
    self_->send(self_, atom::flush_v);
}

void outbox::wait() {
  ensure(!flush_pending() || may_wait_, "only plans that may wait do");
  flush_asked_ = false;
  flush_records(); // records do not wait
}

size_t outbox::flush(device_handles members, const audience& ranks, operation_queue& operations,
                     const fusing_limits& limits) {
  size_t relayed = 0;
  flush_asked_ = may_wait_ = false;
  if (batch_.plans_size() > 0) {
    auto batch = std::exchange(batch_, {});
    if (std::exchange(may_fuse_, false))
      batch = fuse(std::move(batch), operations, limits);
    operation_orders orders{std::make_shared<const proto::OperationBatch>(std::move(batch)),
                            std::make_shared<const device_handles>(std::move(members))};
    std::scoped_lock lock{*enqueue_order_};
    relayed = ranks.tell(orders);
  }
  flush_records();
  for (auto& answer : std::exchange(answers_, {}))
    answer();
  return relayed;
}

void outbox::send_shared(const caf::strong_actor_ptr& receiver, const caf::message& what) const {
  receiver->enqueue(self_->ctrl(), caf::make_message_id(), what, self_->context());
}

} // namespace ringmaster
