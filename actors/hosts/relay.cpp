#include "actors/hosts/relay.hpp"

#include "messages/wire_ids.hpp"

#include <algorithm>
#include <utility>

namespace ringmaster {

void relay_state::device_ready(const proto::DeviceReady& x, const device_handle& handle) {
  std::erase_if(streams_, [](auto& known) { return !caf::actor_cast<caf::strong_actor_ptr>(known.second); });
  streams_[id_of(x.metadata())] = handle.stream->address();
}

caf::strong_actor_ptr relay_state::stream_of(device_id device) const {
  auto known = streams_.find(device);
  return known == streams_.end() ? nullptr : caf::actor_cast<caf::strong_actor_ptr>(known->second);
}

// -- from a communicator -------------------------------------------------------

void relay_state::meet(communicator_id communicator) {
  auto& known = communicators_[communicator];
  auto sender = caf::actor_cast<communicator_actor>(self->current_sender());
  if (!sender || known == sender)
    return;
  known = sender;
  self->monitor(known);
}

template <class T>
void relay_state::pass_on(const T& what, const std::vector<device_id>& devices) {
  auto message = caf::make_message(what); // one for all
  for (auto device : devices)
    if (auto stream = stream_of(device)) // else it has died, and its monitor says so
      stream->enqueue(self->ctrl(), caf::make_message_id(), message, self->context());
}

void relay_state::expect(const operation_orders& x, const std::vector<device_id>& devices) {
  for (auto& plan : x.batch->plans()) {
    meet(communicator_id{plan.comm_id()});
    reports_.expect(communicator_id{plan.comm_id()}, epoch_number{plan.epoch()}, devices);
  }
}

void relay_state::stop(const proto::Quiesce& x) {
  communicator_id communicator{x.comm_id()};
  meet(communicator);
  tell(communicator, reports_.stop(communicator));
}

// -- to a communicator ---------------------------------------------------------

template <class T>
void relay_state::answer(communicator_id communicator, T&& what) {
  if (auto known = communicators_.find(communicator); known != communicators_.end())
    self->send(known->second, std::forward<T>(what));
}

void relay_state::on_arrival(const joint_arrival& x) {
  if (auto news = reports_.on_arrival(x))
    answer(x.communicator, std::move(*news));
}

void relay_state::on_report(const proto::RankReport& x) {
  tell(communicator_id{x.comm_id()}, reports_.on_report(x));
}

void relay_state::tell(communicator_id communicator, std::vector<proto::RankReport> reports) {
  if (reports.empty())
    return;
  proto::RankReports message;
  for (auto& x : reports)
    *message.add_reports() = std::move(x);
  answer(communicator, std::move(message));
}

void relay_state::on_down(const caf::down_msg& x) {
  for (auto i = communicators_.begin(); i != communicators_.end();)
    if (i->second->address() == x.source) {
      reports_.forget(i->first);
      i = communicators_.erase(i);
    } else {
      ++i;
    }
}

// -- how far the devices are -----------------------------------------------------

void relay_state::ask_progress(const proto::ProgressRequest& x, const std::vector<device_id>& devices) {
  progress_desk::key request{communicator_id{x.comm_id()}, x.number()};
  std::set<device_id> asked;
  for (auto device : devices)
    if (stream_of(device))
      asked.insert(device);
  pass_on(x, {asked.begin(), asked.end()});
  askers_[request] = caf::actor_cast<communicator_actor>(self->current_sender());
  report(request, progress_.ask(request, std::move(asked)));
  if (!progress_.is_open(request))
    return;
  timers_[++last_timer_] = request;
  self->delayed_send(self, report_limit, atom::expire_v, last_timer_);
}

void relay_state::on_progress(const proto::Progress& x) {
  report({communicator_id{x.comm_id()}, x.number()}, progress_.on_progress(x));
}

void relay_state::expire(uint64_t number) {
  constexpr auto patience = 50; // times the limit: whoever asks has given up the device by then
  auto timer = timers_.extract(number);
  if (!timer || !progress_.is_open(timer.mapped()))
    return;
  auto request = timer.mapped();
  if (auto what = progress_.on_limit(request)) {
    report(request, std::move(what));
    timers_[++last_timer_] = request;
    self->delayed_send(self, patience * report_limit, atom::expire_v, last_timer_);
  } else {
    progress_.forget(request);
    report(request, std::nullopt);
  }
}

void relay_state::report(const progress_desk::key& request, std::optional<proto::ProgressReport> what) {
  if (what)
    self->send(askers_[request], std::move(*what));
  if (!progress_.is_open(request))
    askers_.erase(request);
}

relay_actor::behavior_type relay(relay_actor::stateful_pointer<relay_state> self, caf::timespan report_limit) {
  auto& state = self->state;
  state.self = self;
  state.report_limit = report_limit;
  self->set_down_handler([&state](const caf::down_msg& x) { state.on_down(x); });
  return {
    [&state](const proto::DeviceReady& x, const device_handle& handle) { state.device_ready(x, handle); },
    [&state](const operation_orders& x, const std::vector<device_id>& devices) {
      state.expect(x, devices);
      state.pass_on(x, devices);
    },
    [&state](const proto::Release& x, const std::vector<device_id>& devices) { state.pass_on(x, devices); },
    [&state](const proto::Quiesce& x, const std::vector<device_id>& devices) {
      state.stop(x);
      state.pass_on(x, devices);
    },
    [&state](const proto::ProgressRequest& x, const std::vector<device_id>& devices) {
      state.ask_progress(x, devices);
    },
    [&state](const joint_arrival& x) { state.on_arrival(x); },
    [&state](const proto::RankReport& x) { state.on_report(x); },
    [&state](const proto::Quiesced& x) { state.answer(communicator_id{x.comm_id()}, x); },
    [&state](const proto::Progress& x) { state.on_progress(x); },
    [&state](atom::expire, uint64_t timer) { state.expire(timer); },
  };
}

} // namespace ringmaster
