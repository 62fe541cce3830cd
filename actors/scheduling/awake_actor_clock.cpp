#include "actors/scheduling/awake_actor_clock.hpp"

#include <algorithm>
#include <type_traits>

namespace ringmaster {

awake_actor_clock::time_point awake_actor_clock::now() const noexcept {
  return awake_clock::actor_now();
}

void awake_actor_clock::set_ordinary_timeout(time_point t, caf::abstract_actor* self, caf::atom_value type,
                                             uint64_t id) {
  push(new ordinary_timeout(t, self->ctrl(), type, id), t);
}

void awake_actor_clock::set_multi_timeout(time_point t, caf::abstract_actor* self, caf::atom_value type, uint64_t id) {
  push(new multi_timeout(t, self->ctrl(), type, id), t);
}

void awake_actor_clock::set_request_timeout(time_point t, caf::abstract_actor* self, caf::message_id id) {
  push(new request_timeout(t, self->ctrl(), id), t);
}

void awake_actor_clock::cancel_ordinary_timeout(caf::abstract_actor* self, caf::atom_value type) {
  push(new ordinary_timeout_cancellation(self->id(), type), time_point::max());
}

void awake_actor_clock::cancel_request_timeout(caf::abstract_actor* self, caf::message_id id) {
  push(new request_timeout_cancellation(self->id(), id), time_point::max());
}

void awake_actor_clock::cancel_timeouts(caf::abstract_actor* self) {
  push(new timeouts_cancellation(self->id()), time_point::max());
}

void awake_actor_clock::schedule_message(time_point t, caf::strong_actor_ptr receiver,
                                         caf::mailbox_element_ptr content) {
  push(new actor_msg(t, std::move(receiver), std::move(content)), t);
}

void awake_actor_clock::schedule_message(time_point t, caf::group target, caf::strong_actor_ptr sender,
                                         caf::message content) {
  push(new group_msg(t, std::move(target), std::move(sender), std::move(content)), t);
}

void awake_actor_clock::cancel_all() {
  push(new drop_all, time_point::min()); // at once: who calls this lets go of what the schedule holds
}

void awake_actor_clock::push(event* what, time_point due) {
  std::unique_lock lock{guard_};
  queue_.emplace_back(what);
  if (must_look_ || (due >= next_look_ && next_look_ != time_point::max() && queue_.size() < queued_max))
    return;
  must_look_ = true;
  lock.unlock();
  changed_.notify_one();
}

void awake_actor_clock::take(unique_event_ptr what) {
  auto entry = [&](auto* its) {
    what.release();
    add_schedule_entry(std::unique_ptr<std::remove_pointer_t<decltype(its)>>{its});
  };
  switch (what->subtype) {
    case ordinary_timeout_type: return entry(static_cast<ordinary_timeout*>(what.get()));
    case multi_timeout_type: return entry(static_cast<multi_timeout*>(what.get()));
    case request_timeout_type: return entry(static_cast<request_timeout*>(what.get()));
    case actor_msg_type: return entry(static_cast<actor_msg*>(what.get()));
    case group_msg_type: return entry(static_cast<group_msg*>(what.get()));
    case ordinary_timeout_cancellation_type: return handle(static_cast<ordinary_timeout_cancellation&>(*what));
    case request_timeout_cancellation_type: return handle(static_cast<request_timeout_cancellation&>(*what));
    case timeouts_cancellation_type: return handle(static_cast<timeouts_cancellation&>(*what));
    case drop_all_type: schedule_.clear(); return actor_lookup_.clear();
    default: return; // there are no others here
  }
}

void awake_actor_clock::run() {
  awake_clock::ticking ticks;
  std::unique_lock lock{guard_};
  while (!stopped_) {
    const auto present = now();
    next_look_ = present + awake_clock::tick;
    if (!schedule_.empty())
      next_look_ = std::min(next_look_, schedule_.begin()->first);
    changed_.wait_for(lock, next_look_ - present, [this] { return must_look_ || stopped_; });
    next_look_ = time_point::max();
    must_look_ = false;
    auto events = std::exchange(queue_, {});
    lock.unlock();
    awake_clock::note_tick();
    for (auto& each : events)
      take(std::move(each));
    events.clear(); // may end actors, which may cancel their timeouts
    trigger_expired_timeouts();
    lock.lock();
  }
  lock.unlock(); // actors that end with the schedule may still push
  schedule_.clear();
  actor_lookup_.clear();
}

void awake_actor_clock::stop() {
  {
    std::scoped_lock lock{guard_};
    stopped_ = true;
  }
  changed_.notify_one();
}

} // namespace ringmaster
