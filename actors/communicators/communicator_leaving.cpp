// A COMMUNICATOR's members that leave.
#include "actors/communicators/communicator.hpp"

#include "actors/calls/answers.hpp"

namespace ringmaster {

void communicator_state::leave(const proto::LeaveRequest& x, leave_promise promise) {
  std::vector<device_id> devices;
  for (auto id : x.device_ids())
    if (epochs_->is_there(device_id{id}))
      devices.push_back(device_id{id});
  bool stay = x.reason().empty();
  const auto problem = stay ? caf::error{} : epochs_->ask_to_leave(devices, x.reason());
  if (stay || problem || devices.empty()) {
    auto answer = verdict<proto::LeaveResponse>(problem);
    answer.set_epoch(epoch().value);
    promise.deliver(std::move(answer));
  } else {
    leave_calls_.push_back({{devices.begin(), devices.end()}, std::move(promise)});
  }
  carry_out(stay ? epochs_->ask_to_stay(devices) : epoch_change::decisions{}); // nothing may be under way
  run_waiting();
  serve_calls(); // which wait from now on, or go on
}

void communicator_state::carry_out(epoch_change::members_left& x) {
  if (!x.problem) {
    proto::Quiesce forget;
    forget.set_comm_id(options.id.value);
    forget.set_epoch(x.epoch.value);
    forget.set_forget(true);
    proto::Members nobody;
    nobody.set_comm_id(options.id.value);
    nobody.set_epoch(x.epoch.value);
    auto news = caf::make_message(membership::of(std::move(nobody), {}));
    tell(x.devices, forget);
    for (auto device : x.devices)
      outbox_->tell(handle_of(device).device, news);
  }
  auto answer = verdict<proto::LeaveResponse>(x.problem);
  answer.set_epoch(x.epoch.value);
  std::erase_if(leave_calls_, [&](auto& call) {
    bool concerned = false;
    for (auto device : x.devices)
      concerned = call.devices.erase(device) != 0 || concerned;
    bool answered = concerned && (call.devices.empty() || x.problem);
    if (answered)
      call.promise.deliver(answer);
    return answered;
  });
}

} // namespace ringmaster
