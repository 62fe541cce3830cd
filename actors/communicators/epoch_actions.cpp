#include "actors/communicators/epoch_actions.hpp"

#include "actors/calls/answers.hpp"
#include "actors/communicators/journal_records.hpp"
#include "runtime/health/verdict_text.hpp"
#include "runtime/logging/log.hpp"
#include "runtime/text/quantity_text.hpp"

#include <iterator>
#include <utility>

namespace ringmaster {

namespace {

template <class Target>
void write_range(const operation_queue::memory_range& from, Target& to) {
  to.set_address(from.address);
  to.set_bytes(from.bytes);
}

} // namespace

void epoch_actions::carry_out(epoch_change::decisions decisions) {
  if (epochs_.state().is_changing())
    calls_.members_change();
  std::move(decisions.begin(), decisions.end(), std::back_inserter(decisions_));
  if (is_carrying_out_)
    return; // the loop below, further up the call stack, goes on with these
  is_carrying_out_ = true;
  while (!decisions_.empty()) {
    auto next = std::move(decisions_.front());
    decisions_.pop_front();
    std::visit([this](auto& x) { act(x); }, next);
  }
  is_carrying_out_ = false;
  out_.flush_later(); // plans that have waited for this
  reporter_.settle();
  if (epochs_.can_leave())
    change([](auto& epochs) { return epochs.let_leave(); });
  ticks_.keep_on();
}

// -- events ---------------------------------------------------------------------------

void epoch_actions::add_member(const gpu_sim::DeviceMetadata& metadata, const device_handle& handle) {
  const auto device = id_of(metadata);
  members_.add(device, handle);
  watch_.add(device, handle);
  calls_.name(device, text_of(metadata));
}

void epoch_actions::lose(const loss& x) {
  ensure(!x.noticed_by.empty() && !x.devices.empty(), "a loss is noticed, of members");
  std::vector<device_id> members;
  for (auto device : x.devices)
    if (epochs_.members().contains(device) || epochs_.leaving().contains(device))
      members.push_back(device);
  if (members.empty())
    return;
  runner_.flush();
  auto found = reporter_.waits(members.front());
  found.set_kind(x.kind);
  found.set_evidence(x.cause);
  for (auto device : members)
    tell_coordinator(x, device);
  carry_out(epochs_.lost(members, found));
}

void epoch_actions::note_left(device_id device, const std::string& cause) {
  if (!epochs_.members().contains(device) && !epochs_.leaving().contains(device))
    return;
  runner_.flush();
  tell_coordinator({{device}, {}, cause, {}}, device);
  carry_out(epochs_.lost(device, cause, true));
}

void epoch_actions::tell_coordinator(const loss& x, device_id device) {
  if (!options_.coordinator)
    return;
  proto::MemberLost lost;
  lost.set_comm_id(options_.id.value);
  lost.set_device_id(device.value);
  lost.set_cause(x.cause);
  lost.set_noticed_by(x.noticed_by);
  lost.set_fence(x.fence);
  lost.set_noticed_ns(out_.unix_ns());
  lost.set_lives(x.kind == proto::Verdict::UNREACHABLE);
  if (x.suspicion)
    *lost.mutable_suspicion() = *x.suspicion;
  self_->send(options_.coordinator, std::move(lost));
}

void epoch_actions::publish(const proto::Verdict& x) {
  log_warn({.communicator = options_.id.value}, "communicator {}: {}", options_.id.value, text_of(x));
  proto::Record record;
  *record.mutable_verdict() = x;
  out_.journal(std::move(record));
  const auto message = caf::make_message(x);
  for (auto& relay : members_.relays_elsewhere(epochs_.members().ranks()))
    out_.send_shared(relay, message);
}

void epoch_actions::leave(const proto::LeaveRequest& x, client_waiters::leave_promise promise) {
  std::vector<device_id> devices;
  for (auto id : x.device_ids())
    if (epochs_.members().contains(device_id{id}))
      devices.push_back(device_id{id});
  const bool stay = x.reason().empty();
  const auto problem = stay ? caf::error{} : epochs_.ask_to_leave(devices, x.reason());
  if (stay || problem || devices.empty()) {
    auto answer = verdict<proto::LeaveResponse>(problem);
    answer.set_epoch(epochs_.state().epoch().value);
    promise.deliver(std::move(answer));
  } else {
    waiters_.add_leave({devices.begin(), devices.end()}, std::move(promise));
  }
  carry_out(stay ? epochs_.ask_to_stay(devices) : epoch_change::decisions{}); // they leave now if nothing is in flight
  runner_.run_waiting();
  calls_.serve();
}

void epoch_actions::destroy(const std::string& reason, client_waiters::destroy_promise promise) {
  waiters_.add_destroy(std::move(promise));
  change([&](auto& epochs) { return epochs.destroy(reason); });
}

void epoch_actions::announce_members() {
  const bool is_gone = epochs_.state().phase() == communicator_phase::aborted;
  auto& ranks = epochs_.members().ranks();
  proto::Members x;
  x.set_comm_id(options_.id.value);
  x.set_epoch(epochs_.state().epoch().value);
  if (!is_gone)
    for (auto& rank : ranks)
      *x.add_devices() = rank.metadata;
  members_.devices_of(ids_of(ranks))
    .tell(membership::of(std::move(x), is_gone ? device_handles{} : members_.handles_of(ranks)));
}

// -- decisions ------------------------------------------------------------------------

void epoch_actions::act(epoch_change::stop_streams& x) {
  proto::Quiesce order;
  order.set_comm_id(options_.id.value);
  order.set_epoch(x.epoch.value);
  order.set_forget(x.forget);
  for (auto sequence : x.cancelled)
    order.add_cancel(sequence.value);
  for (auto& [sequence, epoch] : x.decided) {
    auto& op = *order.add_decided();
    op.set_sequence(sequence.value);
    op.set_epoch(epoch.value);
  }
  members_.tell_streams(x.devices, order);
}

void epoch_actions::act(epoch_change::release_operation& x) {
  proto::Release order;
  order.set_comm_id(options_.id.value);
  order.set_epoch(epochs_.state().epoch().value);
  order.set_sequence(x.sequence.value);
  members_.tell_streams(ids_of(epochs_.members().ranks()), order);
}

void epoch_actions::act(epoch_change::outputs_changed& x) {
  if (!options_.coordinator)
    return;
  proto::OutputsWritten written;
  for (auto& from : x.ranges) {
    auto& range = *written.add_ranges();
    range.set_device_id(from.device.value);
    write_range(from, range);
  }
  self_->send(options_.coordinator, std::move(written));
}

void epoch_actions::act(epoch_change::operation_ended& x) {
  runner_.note_ended(x.what);
  calls_.operation_ended(x.what);
}

void epoch_actions::act(epoch_change::spare_wanted& x) {
  if (!options_.coordinator)
    return carry_out(epochs_.no_spare("there is no coordinator"));
  proto::SpareRequest request;
  request.set_comm_id(options_.id.value);
  request.set_timeout_ns(static_cast<uint64_t>(options_.spare_limit.count()));
  *request.mutable_lost() = x.lost;
  request.set_leaving(x.leaving);
  for (auto& from : x.inputs)
    write_range(from, *request.add_inputs());
  self_->request(options_.coordinator, options_.spare_limit + options_.operation_limit, std::move(request))
    .then(
      [this, lost = id_of(x.lost)](const proto::SpareResponse& answer, const device_handle& handle) {
        if (answer.success() && !epochs_.state().is_ending())
          add_member(answer.device(), handle);
        change([&](auto& epochs) { return epochs.spare(answer, lost); });
      },
      [this](const caf::error& problem) { change([&](auto& epochs) { return epochs.no_spare(render(problem)); }); });
}

void epoch_actions::act(epoch_change::epoch_opened& x) {
  auto& ranks = epochs_.members().ranks();
  log_info({.communicator = options_.id.value}, "communicator {}: epoch {} on {}, {} to run again: {}",
           options_.id.value, x.epoch, counted(ranks.size(), "device"), counted(x.rerun.size(), "operation"), x.reason);
  out_.journal(record_of_epoch(x, options_.id, ranks));
  for (auto device : members_.set_ranks(ranks))
    watch_.forget(device);
  announce_members();
  watch_.note_progress(self_->clock().now());
  shared_memory_.reset();
  runner_.run_in_new_epoch();
  calls_.open(x.epoch, ids_of(ranks));
}

void epoch_actions::act(epoch_change::members_left& x) {
  if (!x.problem) {
    proto::Quiesce forget;
    forget.set_comm_id(options_.id.value);
    forget.set_epoch(x.epoch.value);
    forget.set_forget(true);
    members_.tell_streams(x.devices, forget);
    proto::Members none;
    none.set_comm_id(options_.id.value);
    none.set_epoch(x.epoch.value);
    const auto news = caf::make_message(membership::of(std::move(none), {}));
    for (auto device : x.devices)
      out_.send_shared(members_.handle_of(device).device, news);
  }
  auto answer = verdict<proto::LeaveResponse>(x.problem);
  answer.set_epoch(x.epoch.value);
  waiters_.answer_leaves(x.devices, static_cast<bool>(x.problem), answer);
}

void epoch_actions::act(epoch_change::end_began& x) {
  calls_.fail_all(x.error);
}

void epoch_actions::act(epoch_change::communicator_aborted& x) {
  proto::Record record;
  record.mutable_communicator_aborted()->set_comm_id(options_.id.value);
  record.mutable_communicator_aborted()->set_reason(x.reason);
  out_.journal(std::move(record));
  log_info({.communicator = options_.id.value}, "{}", epochs_.async_error());
}

void epoch_actions::act(epoch_change::communicator_gone& x) {
  reporter_.settle();
  announce_members();
  proto::Record record;
  record.mutable_communicator_destroyed()->set_comm_id(options_.id.value);
  record.mutable_communicator_destroyed()->set_reason(x.reason);
  out_.journal(std::move(record));
  out_.flush_records();
  waiters_.answer_destroys();
  members_.stop_watching();
  self_->quit();
}

} // namespace ringmaster
