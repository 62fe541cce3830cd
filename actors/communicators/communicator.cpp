// A COMMUNICATOR's start, what the host calls, and who waits how long.
#include "actors/communicators/communicator.hpp"

#include "actors/calls/answers.hpp"
#include "actors/calls/request_limit.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace ringmaster {

void communicator_state::start(const std::vector<gpu_sim::DeviceMetadata>& devices, const device_handles& handles) {
  outbox_.emplace(self, options.journal, options.clock, options.enqueue_order);
  desk_.emplace(options.id);
  desk_->look_elsewhere([this](device_id x) { return options.waiting->elsewhere(x, options.id, now()); });
  watch_.emplace(options.suspect, options.operation_limit);
  proto::Record record;
  auto& created = *record.mutable_communicator_created();
  created.set_comm_id(options.id.value);
  created.set_policy(options.policy);
  created.set_deterministic(options.deterministic);
  created.set_name(options.name);
  std::vector<rank_device> ranks;
  std::vector<device_id> ids;
  for (size_t rank = 0; rank < devices.size(); ++rank) {
    ranks.push_back({devices[rank], false});
    ids.push_back(ranks.back().id());
    add_member(devices[rank], handles[rank]);
    created.add_device_ids(ids.back().value);
  }
  epochs_.emplace(options.id, options.policy, std::move(ranks));
  find_hosts();
  shared_memory_.emplace(
    self, shared_memory_run::options{options.movers, options.turn}, *epochs_,
    shared_memory_run::callbacks{[this](auto x) { carry_out(std::move(x)); },
                                 [this](auto first, auto last) { release(first, last); },
                                 [this](auto device) { return memory_of(device); },
                                 [this](auto device, auto& why) { lose(device, render(why), "memory", true); },
                                 [this](auto when) { watch_->note_progress(when); },
                                 [this](bool on) {
                                   outbox_->gather_records(on);
                                   if (!on)
                                     outbox_->flush_records();
                                 }});
  outbox_->journal(std::move(record));
  if (options.coordinator)
    self->monitor(options.coordinator);
  announce_members();
  desk_->set_ranks(epochs_->epoch(), std::move(ids));
}

void communicator_state::add_member(const gpu_sim::DeviceMetadata& metadata, const device_handle& handle) {
  auto device = id_of(metadata);
  handles_[device] = handle;
  desk_->name(device, text_of(metadata));
  if (handle.device->node() != self->node() && handle.memory != nullptr && options.neighbours != nullptr)
    if (auto memory = options.neighbours->find(*handle.memory))
      memories_[device] = std::move(*memory);
  self->monitor(caf::actor_cast<caf::actor>(handle.device));
  if (!handle.relay)
    return watch_->add(device);
  auto next = static_cast<watch::process_number>(processes_.size());
  watch_->add(device, processes_.try_emplace(handle.relay->address(), next).first->second);
}

void communicator_state::end_watching() {
  if (options.coordinator)
    self->demonitor(options.coordinator.address());
  for (auto& [device, handle] : handles_)
    self->demonitor(handle.device->address());
}

device_handles communicator_state::handles() const {
  device_handles result;
  for (auto& x : epochs_->ranks())
    result.push_back(handle_of(x.id()));
  return result;
}

std::vector<device_id> communicator_state::ranks() const {
  std::vector<device_id> result;
  for (auto& x : epochs_->ranks())
    result.push_back(x.id());
  return result;
}

audience communicator_state::streams_of(const std::vector<device_id>& devices) const {
  audience result{self};
  for (auto device : devices)
    result.add(device, handle_of(device), options.speak_by_relays);
  return result;
}

caf::error communicator_state::group_start() {
  return epochs_->ending() ? epochs_->end_error() : operations().open_group();
}

caf::error communicator_state::group_end() {
  if (epochs_->ending())
    return epochs_->end_error();
  const bool first = operations().nothing_in_flight();
  if (auto problem = operations().close_group())
    return problem;
  auto closed = operations().take_closed();
  if (!closed.empty() || (first && state() == epoch_change::phase::active))
    begin_batch(!closed.empty()); // an empty group succeeds
  if (closed.empty()) {
    settle();
    return {};
  }
  if (first)
    watch_->note_progress(now());
  for (auto sequence : closed)
    limit_operation(*operations().find(sequence));
  if (state() == epoch_change::phase::active)
    carry_out(epochs_->group_closed());
  run_waiting();
  keep_ticking();
  return {};
}

proto::CollectiveResponse communicator_state::begin(proto::CollectiveRequest& request) {
  bool may_wait = request.answer_may_wait();
  outbox_->gather_records(true);
  auto sequence = enqueue(request);
  outbox_->gather_records(false);
  auto answer = verdict<proto::CollectiveResponse>(sequence ? caf::error{} : sequence.error());
  answer.set_sequence(sequence ? sequence->value : 0);
  if (!may_wait && outbox_->may_wait())
    flush(); // it is none of those that have gathered, and does not wait with them
  return answer;
}

template <class Response>
caf::result<Response> communicator_state::after_the_plans(Response answer) {
  if (!outbox_->flush_pending())
    return answer;
  auto promise = self->make_response_promise<Response>();
  outbox_->when_flushed([promise, answer = std::move(answer)]() mutable { promise.deliver(std::move(answer)); });
  return promise;
}

caf::result<proto::CollectiveResponse> communicator_state::collective(proto::CollectiveRequest& request) {
  return after_the_plans(begin(request));
}

caf::result<proto::CollectiveResponses> communicator_state::collectives(proto::CollectiveRequests& requests) {
  proto::CollectiveResponses answers;
  for (auto& request : *requests.mutable_calls())
    *answers.add_answers() = begin(request);
  return after_the_plans(std::move(answers));
}

fusing_limits communicator_state::may_fuse() const {
  constexpr uint64_t packed_max = 1u << 20;
  constexpr uint64_t series_max = 256u << 20; // what is lost by running again is some tenths of a second
  // Contributions that travel apart take so much scratch, which is as long as the memory.
  auto apart = std::min(series_max, smallest_memory() / (4 * std::max<size_t>(epochs_->ranks().size(), 1)));
  return {options.deterministic, std::min(packed_max, apart), apart, series_max};
}

void communicator_state::flush() {
  control_messages_ += outbox_->flush(handles(), streams_of(ranks()), operations(), may_fuse());
}

void communicator_state::flush_gathered() {
  if (!outbox_->flush_pending())
    return outbox_->wait(); // all has gone with something else
  auto& queue = operations().in_flight();
  bool others_run = std::any_of(queue.begin(), queue.end(), [&](auto& op) {
    return op.state == operation::phase::running && op.sequence < outbox_->first();
  });
  if (others_run && outbox_->may_wait())
    outbox_->wait();
  else
    flush();
}

uint64_t communicator_state::smallest_memory() const {
  uint64_t result = UINT64_MAX;
  for (auto& x : epochs_->ranks())
    result = std::min(result, x.metadata.maxmemaddr().value() - x.metadata.minmemaddr().value());
  return result;
}

void communicator_state::abort(const std::string& reason) {
  change([&] { return epochs_->abort(reason); });
}

void communicator_state::way_lost(const std::string& reason) {
  change([&] { return epochs_->way_lost(reason); });
}

void communicator_state::destroy(const std::string& reason, destroy_promise promise) {
  destroyers_.push_back(std::move(promise));
  change([&] { return epochs_->destroy(reason); });
}

// -- those who wait, and limits -------------------------------------------------

void communicator_state::wait(caf::timespan limit, status_promise promise) {
  auto number = this->limit(limit);
  waiters_.emplace(number, std::pair{std::move(promise), limit});
  settle();
}

void communicator_state::settle() {
  if (!operations().idle() || epochs_->changing() || waiters_.empty())
    return;
  outbox_->flush_records(); // whoever is answered may ask the journal
  for (auto& [number, waiter] : std::exchange(waiters_, {})) {
    waiter.first.deliver(tell_outcome());
    limits_.remove(number);
  }
}

uint64_t communicator_state::limit(caf::timespan limit) {
  limits_.add(++numbers_, now() + limit);
  set_timer();
  return numbers_;
}

void communicator_state::set_timer() {
  if (auto when = limits_.timer())
    self->delayed_send(self, std::max<caf::timespan>(*when - now(), caf::timespan{0}), atom::expire_v);
}

void communicator_state::expire() {
  for (auto number : limits_.take_due(now()))
    expire(number);
  set_timer();
}

void communicator_state::expire(uint64_t number) {
  if (desk_->has(number))
    return call_expired(number);
  if (auto limited = limited_operations_.extract(number))
    return end_late({limited.mapped()}, "its limit");
  auto waiter = waiters_.extract(number);
  if (!waiter)
    return;
  auto answer = status();
  set_error_in(answer,
               make_error(errc::timed_out,
                          fmt::format("waited {:.1f} s: {}",
                                      std::chrono::duration<double>{waiter.mapped().second}.count(), explain())));
  waiter.mapped().first.deliver(std::move(answer));
}

// -- watching -------------------------------------------------------------------

void communicator_state::keep_ticking() {
  if (ticking_ || !watching())
    return;
  ticking_ = true;
  self->delayed_send<caf::message_priority::high>(self, options.suspect.interval, atom::tick_v);
}

std::vector<device_id> communicator_state::watched() const {
  std::vector<device_id> result;
  for (auto& x : epochs_->ranks())
    if (!x.lost)
      result.push_back(x.id());
  return result;
}

void communicator_state::tick() {
  ticking_ = false;
  if (desk_->open() > 0)
    options.waiting->publish(options.id, desk_->waiting_ranks(operations().latest().next()), now());
  auto found = watch_->look(watched(), now());
  if (!found.overload.empty())
    spdlog::info("communicator {}: {}", options.id.value, found.overload);
  for (auto& [device, reason] : found.suspects)
    lose(device, reason, "suspicion", true);
  if (outbox_->flush_pending())
    flush(); // what may wait has waited long enough
  if (!watching())
    return;
  ask_progress(watched());
  shared_memory_->note_moving(now());
  if (something_runs() && watch_->stalled(now()) && state() == epoch_change::phase::active) {
    auto limit_s = std::chrono::duration<double>{watch_->stalled_after()}.count();
    auto reason = fmt::format("no progress for {:.1f} s: {}", limit_s, explain());
    change([&] { return epochs_->stalled(reason); });
  }
  keep_ticking();
}

void communicator_state::ask_progress(const std::vector<device_id>& devices) {
  proto::ProgressRequest request;
  request.set_comm_id(options.id.value);
  request.set_number(watch_->on_request(devices, now()));
  clocks_.asked(request.number(), outbox_->unix_ns());
  audience asked{self};
  for (auto device : devices)
    asked.add(device, handle_of(device), true);
  asked.tell(request, caf::message_priority::high);
}

void communicator_state::on_progress(const proto::Progress& x) {
  watch_->on_answer(x, now());
  traffic_.heard(device_id{x.device_id()}, epoch_number{x.epoch()}, sequence_number{x.sequence()}, x.received(), now());
}

void communicator_state::on_node_report(const proto::ProgressReport& x) {
  if (!self->current_sender())
    return;
  if (auto process = processes_.find(self->current_sender()->address()); process != processes_.end())
    watch_->on_report(process->second, now());
  note_clock(x);
  for (auto& device : x.devices())
    on_progress(device);
}

void communicator_state::note_clock(const proto::ProgressReport& x) {
  if (x.node_id() == 0 || self->current_sender()->node() == self->node())
    return; // of one's own process
  auto found = clocks_.answered(node_id{x.node_id()}, x.number(), x.time_ns(), outbox_->unix_ns());
  if (!found)
    return;
  proto::Record record;
  *record.mutable_node_clock() = std::move(*found);
  outbox_->journal(std::move(record));
}

communicator_actor::behavior_type communicator(communicator_actor::stateful_pointer<communicator_state> self,
                                               communicator_options options,
                                               std::vector<gpu_sim::DeviceMetadata> devices, device_handles handles) {
  auto& state = self->state;
  state.self = self;
  state.options = std::move(options);
  self->set_down_handler([&state](const caf::down_msg& x) { state.on_down(x); });
  state.start(devices, handles);
  state.answer_if_it_dies();
  return {
    [&state](const gpu_sim::GetCommStatusRequest& x) { return x.readonly() ? state.status() : state.tell_outcome(); },
    [&state](const gpu_sim::GroupStartRequest&) { return verdict<gpu_sim::GroupStartResponse>(state.group_start()); },
    [&state](const gpu_sim::GroupEndRequest&) { return verdict<gpu_sim::GroupEndResponse>(state.group_end()); },
    [&state](proto::CollectiveRequest& x) { return state.collective(x); },
    [&state](proto::CollectiveRequests& x) { return state.collectives(x); },
    [&state](const proto::RankCall& x) -> caf::result<proto::RankCallResponse> {
      auto promise = state.self->make_response_promise<proto::RankCallResponse>();
      state.call(x, promise);
      return promise;
    },
    [&state](const proto::CommunicatorStatusRequest&) { return state.whole_status(); },
    [&state](const proto::CommWaitRequest& x) -> caf::result<gpu_sim::GetCommStatusResponse> {
      auto promise = state.self->make_response_promise<gpu_sim::GetCommStatusResponse>();
      state.wait(request_limit(x.timeout_ns()), promise);
      return promise;
    },
    [&state](const proto::CommAbortRequest& x) {
      state.abort(x.reason().empty() ? "aborted by a client" : "aborted by a client: " + x.reason());
      return verdict<proto::CommAbortResponse>(caf::none);
    },
    [&state](const proto::CommDestroyRequest& x) -> caf::result<proto::CommDestroyResponse> {
      auto promise = state.self->make_response_promise<proto::CommDestroyResponse>();
      state.destroy(x.reason().empty() ? "destroyed by a client" : x.reason(), promise);
      return promise;
    },
    [&state](const proto::RankReport& x) { state.on_report(x); },
    [&state](const proto::RankReports& x) { state.on_report(x); },
    [&state](const shared_memory_arrival& x) { state.on_shared_memory_arrival(x); },
    [&state](const shared_memory_arrivals& x) { state.on_shared_memory_arrivals(x); },
    [&state](const proto::Quiesced& x) { state.on_quiesced(x); },
    [&state](const proto::Progress& x) { state.on_progress(x); },
    [&state](const proto::ProgressReport& x) { state.on_node_report(x); },
    [&state](const proto::LeaveRequest& x) -> caf::result<proto::LeaveResponse> {
      auto promise = state.self->make_response_promise<proto::LeaveResponse>();
      state.leave(x, promise);
      return promise;
    },
    [&state](const proto::WayLost& x) { state.way_lost(x.reason()); },
    [&state](const proto::MemberLost& x) { state.on_member_lost(x); },
    [&state](atom::flush) { state.flush_gathered(); },
    [&state](atom::resume, uint64_t number) { state.moved(number); },
    [&state](atom::tick) { state.tick(); },
    [&state](atom::expire) { state.expire(); },
  };
}

} // namespace ringmaster
