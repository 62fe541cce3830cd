#include "actors/hosts/relay.hpp"

#include "messages/received_handles.hpp"
#include "messages/wire_ids.hpp"
#include "runtime/health/verdict_text.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/logging/log.hpp"

#include <caf/make_actor.hpp>
#include <caf/monitorable_actor.hpp>

#include <algorithm>
#include <utility>

namespace ringmaster {

void relay_directory::add(const proto::DeviceReady& x, const device_handle& handle) {
  if (!handle.device || !handle.stream)
    return; // from a peer: our own devices have both
  std::lock_guard guard{mutex_};
  std::erase_if(devices_, [](auto& known) { return !caf::actor_cast<caf::strong_actor_ptr>(known.second.stream); });
  devices_[id_of(x.metadata())] = {handle.device->address(), handle.stream->address(), x, handle.memory};
}

std::vector<std::pair<proto::DeviceReady, device_handle>> relay_directory::living() const {
  std::vector<std::pair<proto::DeviceReady, device_handle>> result;
  std::lock_guard guard{mutex_};
  for (auto& [id, known] : devices_) {
    device_handle handle{caf::actor_cast<caf::strong_actor_ptr>(known.device),
                         caf::actor_cast<caf::strong_actor_ptr>(known.stream),
                         caf::actor_cast<caf::strong_actor_ptr>(entrance), known.memory};
    if (handle.device && handle.stream)
      result.emplace_back(known.ready, std::move(handle));
  }
  return result;
}

caf::strong_actor_ptr relay_directory::device(device_id id) const {
  std::lock_guard guard{mutex_};
  auto known = devices_.find(id);
  return known == devices_.end() ? nullptr : caf::actor_cast<caf::strong_actor_ptr>(known->second.device);
}

caf::strong_actor_ptr relay_directory::stream_of(device_id id) const {
  std::lock_guard guard{mutex_};
  auto known = devices_.find(id);
  return known == devices_.end() ? nullptr : caf::actor_cast<caf::strong_actor_ptr>(known->second.stream);
}

namespace {

using device_ids = std::vector<device_id>;

/// Has no mailbox: messages are passed on by the sender's thread. See make_relay.
class relay_entrance : public caf::monitorable_actor {
public:
  relay_entrance(caf::actor_config& cfg, std::shared_ptr<relay_directory> streams, caf::strong_actor_ptr relay)
    : caf::monitorable_actor(cfg), streams_(std::move(streams)), relay_(std::move(relay)) {}

  const char* name() const override { return "relay_entrance"; }

  void enqueue(caf::mailbox_element_ptr x, caf::execution_unit* context) override {
    auto what = x->move_content_to_message();
    if (what.match_elements<proto::DeviceReady, device_handle>())
      return streams_->add(what.get_as<proto::DeviceReady>(0), what.get_as<device_handle>(1));
    if (pass_on<membership>(what, x->sender, &relay_directory::device, context))
      return;
    if (what.match_elements<proto::ProgressRequest, device_ids>() && streams_->unread_requests++ > 0)
      say_alive(what.get_as<proto::ProgressRequest>(0), x->sender, context);
    relay_->enqueue(x->sender, x->mid, what, context); // first: the streams' answers come after it
    pass_on<operation_orders>(what, relay_, &relay_directory::stream_of, context)
      || pass_on<proto::Release>(what, relay_, &relay_directory::stream_of, context)
      || pass_on<proto::Quiesce>(what, relay_, &relay_directory::stream_of, context);
  }

private:
  void say_alive(const proto::ProgressRequest& x, const caf::strong_actor_ptr& asker, caf::execution_unit* context) {
    if (!asker)
      return; // the connection to its process has ended meanwhile
    proto::ProgressReport alive;
    alive.set_comm_id(x.comm_id());
    alive.set_number(x.number());
    asker->enqueue(ctrl(), caf::make_message_id(caf::message_priority::high), caf::make_message(std::move(alive)),
                   context);
  }

  /// To the actors that `whose` finds for the devices in the message.
  template <class T>
  bool pass_on(const caf::message& what, const caf::strong_actor_ptr& sender,
               caf::strong_actor_ptr (relay_directory::*whose)(device_id) const, caf::execution_unit* context) {
    if (!what.match_elements<T, device_ids>())
      return false;
    auto message = caf::make_message(taken(what.get_as<T>(0))); // one for all
    for (auto device : what.get_as<device_ids>(1))
      if (auto receiver = (*streams_.*whose)(device))
        receiver->enqueue(sender, caf::make_message_id(), message, context);
    return true;
  }

  /// The same message, without handles of devices that have died meanwhile.
  template <class T>
  T taken(const T& x) {
    if constexpr (requires { received(home_system(), x); })
      return received(home_system(), x);
    else
      return x;
  }

  std::shared_ptr<relay_directory> streams_;
  caf::strong_actor_ptr relay_;
};

} // namespace

// -- from a communicator -------------------------------------------------------

void relay_state::meet(communicator_id communicator) {
  auto sender = caf::actor_cast<communicator_actor>(self->current_sender());
  if (!sender)
    return; // the connection to its process has ended meanwhile
  auto& known = communicators_[communicator];
  if (known == sender)
    return;
  known = sender;
  self->monitor(known);
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
    send_to(known->second, std::forward<T>(what));
}

template <class T>
void relay_state::send_to(const communicator_actor& whom, T&& what, caf::message_priority priority) {
  caf::actor_cast<caf::strong_actor_ptr>(whom)->enqueue(caf::actor_cast<caf::strong_actor_ptr>(streams->entrance),
                                                        caf::make_message_id(priority),
                                                        caf::make_message(std::forward<T>(what)), self->context());
}

void relay_state::on_arrival(const shared_memory_arrival& x) {
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

// -- progress of the devices -----------------------------------------------------

void relay_state::ask_progress(const proto::ProgressRequest& x, const std::vector<device_id>& devices) {
  ensure(streams->unread_requests > 0, "a request passes the entrance");
  --streams->unread_requests;
  auto asker = caf::actor_cast<communicator_actor>(self->current_sender());
  if (!asker)
    return; // the connection to its process has ended meanwhile
  progress_desk::key request{communicator_id{x.comm_id()}, x.number()};
  std::set<device_id> asked;
  for (auto device : devices)
    if (auto stream = streams->stream_of(device)) {
      self->send<caf::message_priority::high>(caf::actor_cast<stream_actor>(stream), x);
      asked.insert(device);
    }
  askers_[request] = std::move(asker);
  const bool is_of_idle = x.comm_id() == 0;
  if (is_of_idle)
    report_idle();
  report(request, progress_.ask(request, std::move(asked)));
  if (!progress_.is_open(request))
    return;
  if (is_of_idle)
    return idle_requests_.push_back(request);
  timers_[++last_timer_] = request;
  self->delayed_send<caf::message_priority::high>(self, report_limit, atom::expire_v, last_timer_);
}

/// The next request is the limit of those before it: a timer would wake an idle process once more for each.
void relay_state::report_idle() {
  constexpr size_t open_max = 64; // the coordinator has given the device up by then
  std::erase_if(idle_requests_, [this](auto& x) { return !progress_.is_open(x); });
  for (auto& x : idle_requests_)
    if (auto what = progress_.on_limit(x))
      report(x, std::move(what));
  if (idle_requests_.size() < open_max)
    return;
  const auto oldest = idle_requests_.front();
  idle_requests_.pop_front();
  progress_.forget(oldest);
  report(oldest, std::nullopt);
}

void relay_state::on_progress(const proto::Progress& x) {
  report({communicator_id{x.comm_id()}, x.number()}, progress_.on_progress(x));
}

void relay_state::expire(uint64_t number) {
  constexpr auto patience = 50; // times the limit: the client has given up the device by then
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
  if (what) {
    ensure(askers_.contains(request), "a report has an asker");
    what->set_number(request.second);
    what->set_node_id(node.value);
    what->set_time_ns(clock.unix_ns(self->clock().now()));
    send_to(askers_[request], std::move(*what), caf::message_priority::high);
  }
  if (!progress_.is_open(request))
    askers_.erase(request);
}

relay_actor::behavior_type forwarding_relay(relay_actor::stateful_pointer<relay_state> self, caf::timespan report_limit,
                                            std::shared_ptr<relay_directory> streams, node_id node, wall_clock clock) {
  auto& state = self->state;
  state.self = self;
  state.node = node;
  state.clock = clock;
  state.report_limit = report_limit;
  state.streams = std::move(streams);
  self->set_down_handler([&state](const caf::down_msg& x) { state.on_down(x); });
  return {
    [](const proto::DeviceReady&, const device_handle&) {}, // at the entrance
    [](const membership&, const device_ids&) {},            // the same
    [&state](const operation_orders& x, const device_ids& devices) { state.expect(x, devices); },
    [](const proto::Release&, const device_ids&) {},
    [](const proto::Verdict& x) {
      log_warn({.communicator = x.comm_id()}, "communicator {}: {}", x.comm_id(), text_of(x));
    },
    [&state](const proto::Quiesce& x, const device_ids&) { state.stop(x); },
    [&state](const proto::ProgressRequest& x, const device_ids& devices) { state.ask_progress(x, devices); },
    [&state](const shared_memory_arrival& x) { state.on_arrival(x); },
    [&state](const proto::RankReport& x) { state.on_report(x); },
    [&state](const proto::Quiesced& x) { state.answer(communicator_id{x.comm_id()}, x); },
    [&state](const proto::Progress& x) { state.on_progress(x); },
    [&state](atom::expire, uint64_t timer) { state.expire(timer); },
  };
}

relay_actor make_relay(caf::actor_system& system, caf::timespan report_limit, node_id node, wall_clock clock,
                       std::shared_ptr<relay_directory> devices) {
  auto streams = devices ? std::move(devices) : std::make_shared<relay_directory>();
  auto relay = system.spawn(forwarding_relay, report_limit, streams, node, clock);
  caf::actor_config config;
  auto entrance = caf::make_actor<relay_entrance, caf::strong_actor_ptr>(
    system.next_actor_id(), system.node(), &system, config, streams, caf::actor_cast<caf::strong_actor_ptr>(relay));
  streams->entrance = entrance->address();
  // Actors that are linked with the entrance, or monitor it, learn of the end of the actor after it.
  relay->attach_functor([entrance](const caf::error& why) {
    static_cast<relay_entrance*>(entrance->get())->cleanup(caf::error{why}, nullptr);
  });
  return caf::actor_cast<relay_actor>(entrance);
}

} // namespace ringmaster
