#include "actors/hosts/coordinator_proxy.hpp"

#include "actors/calls/answers.hpp"
#include "actors/hosts/connection_watch.hpp"
#include "actors/hosts/connections.hpp"
#include "actors/hosts/coordinator_process.hpp"
#include "actors/hosts/open_connection.hpp"
#include "actors/scheduling/awake_clock.hpp"
#include "messages/try.hpp"
#include "runtime/coordination/random_id.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"

#include <caf/blocking_actor.hpp>
#include <caf/io/middleman.hpp>
#include <caf/make_actor.hpp>
#include <caf/monitorable_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

namespace ringmaster {

namespace {

constexpr size_t messages_kept_max = 65'536; ///< Without an answer, while there is no coordinator.

class coordinator_proxy;

/// The sender, on the coordinator's side, of what one actor of this process sends. Has no mailbox.
class proxy_sender final : public caf::monitorable_actor {
public:
  proxy_sender(caf::actor_config& cfg, const caf::strong_actor_ptr& proxy, const caf::strong_actor_ptr& client,
               uint64_t number)
    : caf::monitorable_actor(cfg), caller(number), proxy_(proxy->address()), client_(client->address()) {}

  const char* name() const override { return "proxy_sender"; }
  void enqueue(caf::mailbox_element_ptr x, caf::execution_unit* context) override;

  struct open_request {
    caf::message_id asked; ///< The client's.
    caf::message what;
  };

  // Under the proxy's mutex:
  std::map<uint64_t, open_request> open; ///< By our number.
  /// By a greeting's number: a request that is said to have reached no one, and that answer.
  std::map<uint64_t, std::pair<uint64_t, caf::message>> doubted;
  std::map<uint64_t, uint64_t> acknowledged; ///< By communicator, the latest operation of its calls.
  uint64_t requests = 0;
  const uint64_t caller; ///< These two are of proto::CallId.
  uint64_t calls = 0;

  caf::strong_actor_ptr client() const { return caf::actor_cast<caf::strong_actor_ptr>(client_); }

private:
  caf::actor_addr proxy_, client_;
};

template <class Call>
void give_id(Call& call, proxy_sender& from) {
  if constexpr (requires { call.mutable_call(); }) {
    call.mutable_call()->set_caller(from.caller);
    call.mutable_call()->set_number(++from.calls);
  } else if constexpr (requires { call.set_callnumber(0); }) {
    call.set_caller(from.caller);
    call.set_callnumber(++from.calls);
  } else {
    call.set_caller(from.caller);
    call.set_call_number(++from.calls);
  }
}

/// Gives the element of a message an id, if it is of this type.
template <class Call>
bool identify_as(caf::message& what, size_t at, proxy_sender& from) {
  if (!what.match_element<Call>(at))
    return false;
  give_id(what.get_mutable_as<Call>(at), from);
  return true;
}

template <class... Calls>
bool identify_as_one_of(caf::message& what, size_t at, proxy_sender& from) {
  return (identify_as<Calls>(what, at, from) || ...);
}

/// Calls that must run once get an id, by which one that is sent again is recognised.
void identify(caf::message& what, proxy_sender& from) {
  if (what.empty())
    return;
  if (what.match_elements<proto::CollectiveRequests>()) {
    for (auto& call : *what.get_mutable_as<proto::CollectiveRequests>(0).mutable_calls())
      give_id(call, from);
    return;
  }
  const size_t at = what.size() > 1 && what.match_element<gpu_sim::DeviceId>(0) ? 1 : 0; // of calls to a device
  identify_as_one_of<proto::RankCall, proto::CollectiveRequest, gpu_sim::CommInitRequest, proto::CommDeriveRequest,
                     gpu_sim::AllReduceRingRequest, gpu_sim::MemcpyRequest, proto::CopyRequest, proto::AllocateRequest,
                     proto::FreeRequest, proto::StreamCreateRequest, gpu_sim::BeginSendRequest,
                     gpu_sim::BeginReceiveRequest, gpu_sim::DataChunk>(what, at, from);
}

uint64_t communicator_of_call(const caf::message& call) {
  if (call.match_elements<proto::CollectiveRequest>())
    return call.get_as<proto::CollectiveRequest>(0).comm_id();
  if (call.match_elements<gpu_sim::AllReduceRingRequest>())
    return call.get_as<gpu_sim::AllReduceRingRequest>(0).commid();
  if (call.match_elements<proto::CollectiveRequests>() && call.get_as<proto::CollectiveRequests>(0).calls_size() > 0)
    return call.get_as<proto::CollectiveRequests>(0).calls(0).comm_id();
  return 0;
}

uint64_t acknowledged_by(const caf::message& answer) {
  if (answer.match_elements<proto::CollectiveResponse>())
    return answer.get_as<proto::CollectiveResponse>(0).sequence();
  if (answer.match_elements<gpu_sim::AllReduceRingResponse>())
    return answer.get_as<gpu_sim::AllReduceRingResponse>(0).sequence();
  uint64_t latest = 0;
  if (answer.match_elements<proto::CollectiveResponses>())
    for (auto& each : answer.get_as<proto::CollectiveResponses>(0).answers())
      latest = std::max(latest, each.sequence());
  return latest;
}

class coordinator_proxy final : public caf::monitorable_actor {
public:
  coordinator_proxy(caf::actor_config& cfg, const found_coordinator& first, coordinator_way way)
    : caf::monitorable_actor(cfg), way_(std::move(way)), identity_(first.identity), now_at_(first.where) {}

  const char* name() const override { return "coordinator_proxy"; }

  /// Called once, when it has a handle.
  void start(const coordinator_actor& coordinator) {
    if (home_system().has_middleman())
      manager_ = home_system().middleman().actor_handle()->address();
    {
      std::scoped_lock lock{mutex_};
      remote_ = caf::actor_cast<caf::strong_actor_ptr>(coordinator);
    }
    watch(coordinator);
    if (way_.watch)
      way_.watch([proxy = caf::actor_addr{address()}](const found_coordinator& by) {
        if (auto alive = caf::actor_cast<caf::strong_actor_ptr>(proxy))
          static_cast<coordinator_proxy&>(*alive->get()).succeeded(by);
      });
    else if (way_.addresses.size() > 1 && identity_.cluster_id() != 0 && way_.patience.count() > 0)
      watch_for_silence();
  }

  void add_listener(const node_actor& node) {
    std::scoped_lock lock{mutex_};
    listeners_.push_back(caf::actor_cast<caf::strong_actor_ptr>(node)->address());
  }

  void enqueue(caf::mailbox_element_ptr x, caf::execution_unit* context) override {
    const auto mid = x->mid;
    const auto client = x->sender;
    auto what = x->move_content_to_message();
    if (what.match_elements<caf::exit_msg>() || what.match_elements<caf::down_msg>() || mid.is_response())
      return;
    std::unique_lock lock{mutex_};
    if (ended_) {
      lock.unlock();
      if (mid.is_request() && client)
        client->enqueue(ctrl(), mid.response_id(), caf::make_message(make_error(caf::sec::request_receiver_down)),
                        context);
      return;
    }
    auto sender = client ? sender_of(client, lock) : nullptr;
    if (mid.is_request() && sender != nullptr) {
      auto& from = static_cast<proxy_sender&>(*sender->get());
      const auto number = ++from.requests;
      identify(what, from);
      from.open.emplace(number, proxy_sender::open_request{mid, what});
      pass_on(sender, caf::make_message_id(number), what, context);
    } else if (remote_) {
      if (what.match_elements<std::string, caf::strong_actor_ptr>())
        note_published(what);
      pass_on(sender, caf::make_message_id(), what, context);
    } else {
      if (kept_.size() >= messages_kept_max)
        kept_.pop_front();
      kept_.emplace_back(sender, what);
    }
  }

  void answer(proxy_sender& to, caf::message_id mid, caf::message what, const caf::strong_actor_ptr& who,
              caf::execution_unit* context) {
    std::optional<proxy_sender::open_request> asked;
    {
      std::scoped_lock lock{mutex_};
      auto number = mid.request_id().integer_value() & number_mask;
      if (auto doubt = to.doubted.extract(number)) {
        if (what.match_elements<caf::error>())
          return; // the coordinator is gone: the request waits for its return
        std::tie(number, what) = std::move(doubt.mapped());
      } else if (has_reached_no_one(what)) {
        return doubt_answer(to, number, std::move(what), context);
      }
      const auto found = to.open.find(number);
      if (found == to.open.end())
        return; // it was sent twice, and answered once
      asked = std::move(found->second);
      to.open.erase(found);
      if (const auto communicator = communicator_of_call(asked->what))
        if (auto latest = acknowledged_by(what))
          to.acknowledged[communicator] = std::max(to.acknowledged[communicator], latest);
    }
    if (auto client = to.client())
      client->enqueue(who, asked->asked.response_id(), std::move(what), context);
  }

  void client_ended(const caf::actor_addr& client, const caf::error& why) {
    caf::strong_actor_ptr sender;
    {
      std::scoped_lock lock{mutex_};
      const auto found = senders_.find(client);
      if (found == senders_.end())
        return;
      sender = std::move(found->second);
      senders_.erase(found);
    }
    static_cast<proxy_sender&>(*sender->get()).cleanup(caf::error{why}, nullptr);
  }

  void lost(const caf::actor_addr& remote, const caf::error& why) {
    {
      std::scoped_lock lock{mutex_};
      if (ended_ || !remote_ || remote_->address() != remote)
        return;
      remote_ = nullptr;
      reason_ = why;
    }
    const bool in_good_order = !why || why == caf::exit_reason::user_shutdown;
    if (in_good_order || identity_.cluster_id() == 0 || way_.patience.count() == 0)
      return end(why);
    spdlog::warn("the coordinator is gone ({}): waits for its return, for {} at most (node.orphan-timeout)",
                 render(why), duration_text(way_.patience));
    auto then = [proxy = caf::actor_addr{address()}](const auto& found) {
      if (auto alive = caf::actor_cast<caf::strong_actor_ptr>(proxy))
        static_cast<coordinator_proxy&>(*alive->get()).found(found);
    };
    if (way_.look)
      return way_.look(identity_, std::move(then));
    look_over_tcp(std::move(then));
  }

  void found(const caf::expected<found_coordinator>& what) {
    if (!what)
      return end(what.error());
    if (what->identity.incarnation() == identity_.incarnation()) // the connection was lost, and it counts us as gone
      return end(reason_);
    return_of(*what);
  }

  /// The coordinator is silent, and this one leads in its place. The former may have been paused, or orders of it may
  /// still be under way: nothing that it says from now on reaches this process.
  void succeeded(const found_coordinator& by) {
    {
      std::scoped_lock lock{mutex_};
      if (ended_ || !remote_ || by.identity.incarnation() <= identity_.incarnation())
        return;                                            // or its end was noticed, and it is looked for
      const auto former = std::exchange(remote_, nullptr); // its end, when it is noticed, is none of ours
      connection_watch::part_from(home_system(), former->node());
    }
    spdlog::warn("the coordinator is silent, and another one has taken its place");
    return_of(by);
  }

private:
  static constexpr uint64_t number_mask = 0x1FFFFFFFFFFFFFFF; // of a message id: the rest is its category

  void watch(const coordinator_actor& coordinator) {
    auto remote = caf::actor_cast<caf::strong_actor_ptr>(coordinator);
    remote->get()->attach_functor([proxy = caf::actor_addr{address()},
                                   remote = remote->address()](const caf::error& why) {
      if (auto alive = caf::actor_cast<caf::strong_actor_ptr>(proxy))
        static_cast<coordinator_proxy&>(*alive->get()).lost(remote, why);
    });
  }

  static bool has_reached_no_one(const caf::message& answer) {
    return answer.match_elements<caf::error>() && answer.get_as<caf::error>(0) == caf::sec::request_receiver_down;
  }

  // With the mutex held:

  /// CAF answers so when a connection has ended, which it may do before anyone has noticed that; and the coordinator's
  /// process, where a communicator has ended. A coordinator that answers a greeting is there.
  void doubt_answer(proxy_sender& to, uint64_t number, caf::message what, caf::execution_unit* context) {
    if (!remote_)
      return; // the request waits for its return
    const auto greeting = ++to.requests;
    to.doubted.emplace(greeting, std::pair{number, std::move(what)});
    pass_on(caf::strong_actor_ptr{to.ctrl()}, caf::make_message_id(greeting),
            caf::make_message(proto::GreetingRequest{}), context);
  }

  caf::strong_actor_ptr sender_of(const caf::strong_actor_ptr& client, std::unique_lock<std::recursive_mutex>&) {
    auto& known = senders_[client->address()];
    if (known == nullptr) {
      caf::actor_config config;
      auto& system = home_system();
      known = caf::make_actor<proxy_sender, caf::strong_actor_ptr>(system.next_actor_id(), system.node(), &system,
                                                                   config, caf::strong_actor_ptr{ctrl()}, client,
                                                                   way_.draw_caller ? way_.draw_caller() : random_id());
      client->get()->attach_functor([proxy = caf::actor_addr{address()},
                                     client = client->address()](const caf::error& why) {
        if (auto alive = caf::actor_cast<caf::strong_actor_ptr>(proxy))
          static_cast<coordinator_proxy&>(*alive->get()).client_ended(client, why);
      });
    }
    return known;
  }

  void pass_on(const caf::strong_actor_ptr& sender, caf::message_id mid, const caf::message& what,
               caf::execution_unit* context) {
    if (remote_)
      remote_->enqueue(sender, mid, what, context);
  }

  /// Names of actors are published again to a coordinator that is back.
  void note_published(const caf::message& what) { published_[what.get_as<std::string>(0)] = what; }

  void return_of(const found_coordinator& found) {
    {
      std::scoped_lock lock{mutex_};
      if (ended_)
        return;
      if (!listeners_.empty()) // the memory of its devices is about to be another coordinator's
        end_replaced_coordinator(identity_);
      remote_ = caf::actor_cast<caf::strong_actor_ptr>(found.handle);
      identity_ = found.identity;
      now_at_ = found.where;
      for (auto& each : listeners_)
        if (auto node = caf::actor_cast<node_actor>(each))
          caf::anon_send(node, found.identity);
      for (auto& [client, sender] : senders_) {
        auto& from = static_cast<proxy_sender&>(*sender->get());
        proto::ClientReturn back;
        back.set_owner(caf::to_string(sender));
        for (auto& [communicator, sequence] : from.acknowledged) {
          auto& calls = *back.add_calls();
          calls.set_comm_id(communicator);
          calls.set_sequence(sequence);
        }
        pass_on(sender, caf::make_message_id(++from.requests), caf::make_message(std::move(back)), nullptr);
        for (auto& [number, request] : from.open)
          pass_on(sender, caf::make_message_id(number), request.what, nullptr);
      }
      for (auto& [name, what] : published_)
        pass_on(nullptr, caf::make_message_id(), what, nullptr);
      for (auto& [sender, what] : std::exchange(kept_, {}))
        pass_on(sender, caf::make_message_id(), what, nullptr);
    }
    spdlog::info("the coordinator is back (incarnation {})", found.identity.incarnation());
    watch(found.handle);
  }

  void end(const caf::error& why) {
    std::map<caf::actor_addr, caf::strong_actor_ptr> senders;
    {
      std::scoped_lock lock{mutex_};
      if (std::exchange(ended_, true))
        return;
      senders = std::exchange(senders_, {});
      kept_.clear();
    }
    for (auto& [client, sender] : senders)
      static_cast<proxy_sender&>(*sender->get()).cleanup(caf::error{why}, nullptr);
    cleanup(why ? caf::error{why} : caf::error{caf::exit_reason::user_shutdown}, nullptr);
  }

  void look_over_tcp(coordinator_way::found then) {
    auto looks = [way = way_, expected = identity_, reason = reason_, proxy = caf::actor_addr{address()},
                  manager = manager_, then = std::move(then)](caf::blocking_actor* self, bool) {
      const auto until = awake_clock::actor_now() + way.patience;
      caf::error latest = reason;
      for (size_t i = 0; awake_clock::actor_now() < until && !no_more_connecting::is_so(); ++i) {
        std::this_thread::sleep_for(i == 0 ? first_look_after : way.try_again);
        if (caf::actor_cast<caf::strong_actor_ptr>(proxy) == nullptr)
          return; // no one waits for it
        if (has_ended(manager))
          return then(reason); // this process is ending, and its connections with it
        auto& where = way.addresses[i % way.addresses.size()];
        auto found = find_coordinator(self->system(), where, &expected,
                                      way.addresses.size() > 1 ? one_of_several : only_one);
        if (found)
          return then(found);
        latest = found.error();
        const auto code = code_of(latest);
        if (code == errc::refused || code == errc::aborted || code == errc::wrong_version)
          return then(latest);
      }
      then(make_error(errc::timed_out,
                      fmt::format("the coordinator has not come back within {} (node.orphan-timeout): {}",
                                  duration_text(way.patience), render(latest))));
    };
    home_system().spawn<caf::detached + caf::hidden>(std::move(looks), true);
  }

  /// A coordinator that is paused, or whose host is cut off, ends no connection. Where another one can replace it, it
  /// is asked for a sign of life now and then; while it gives none, the others' addresses are tried.
  void watch_for_silence() {
    auto looks = [way = way_, proxy = caf::actor_addr{address()}, manager = manager_](caf::blocking_actor* self, bool) {
      const auto goes_on = [&] { return !no_more_connecting::is_so() && !has_ended(manager); };
      while (goes_on()) {
        std::this_thread::sleep_for(look_for_silence_every);
        const auto alive = caf::actor_cast<caf::strong_actor_ptr>(proxy);
        if (alive == nullptr)
          return;
        auto& its = static_cast<coordinator_proxy&>(*alive->get());
        const auto present = its.present();
        if (!present)
          return;
        const auto is_alive = [&](caf::timespan limit) {
          return greet(self->system(), present->handle, nullptr, limit).engaged();
        };
        if (!present->handle || is_alive(silent_after))
          continue;
        while (goes_on() && !its.find_successor(*present, self->system()) && !is_alive(way.try_again))
          ;
      }
    };
    home_system().spawn<caf::detached + caf::hidden>(std::move(looks), true);
  }

  /// Without a handle while it is gone; none: this proxy has ended.
  std::optional<found_coordinator> present() {
    std::scoped_lock lock{mutex_};
    if (ended_)
      return std::nullopt;
    return found_coordinator{caf::actor_cast<coordinator_actor>(remote_), identity_, now_at_};
  }

  /// Whether another coordinator has taken the place of this one.
  bool find_successor(const found_coordinator& silent, caf::actor_system& system) {
    for (auto& where : way_.addresses) {
      if (where == silent.where)
        continue;
      const auto found = find_coordinator(system, where, &silent.identity, one_of_several);
      if (!found || found->identity.incarnation() <= silent.identity.incarnation())
        continue;
      succeeded(*found);
      return true;
    }
    return false;
  }

  static bool has_ended(const caf::actor_addr& x) {
    const auto alive = caf::actor_cast<caf::strong_actor_ptr>(x);
    return alive == nullptr || alive->get()->getf(caf::abstract_actor::is_terminated_flag);
  }

  /// A process that ends also loses its connections: it looks for nothing.
  static constexpr caf::timespan first_look_after = std::chrono::milliseconds{10};
  /// For one attempt to find it at an address.
  static constexpr caf::timespan only_one = std::chrono::seconds{2}, one_of_several = std::chrono::seconds{1};
  static constexpr caf::timespan look_for_silence_every = std::chrono::milliseconds{250};
  static constexpr caf::timespan silent_after = std::chrono::seconds{1};

  const coordinator_way way_;
  caf::actor_addr manager_;    ///< Of this process's connections.
  std::recursive_mutex mutex_; ///< For what follows. An actor that has ended may answer within a call.
  proto::ClusterIdentity identity_;
  endpoint now_at_;
  caf::strong_actor_ptr remote_; ///< Null: it is gone.
  caf::error reason_;            ///< Why it is.
  bool ended_ = false;
  std::map<caf::actor_addr, caf::strong_actor_ptr> senders_; ///< By the actor that sends.
  std::vector<caf::actor_addr> listeners_;
  std::map<std::string, caf::message> published_;
  std::deque<std::pair<caf::strong_actor_ptr, caf::message>> kept_;
};

void proxy_sender::enqueue(caf::mailbox_element_ptr x, caf::execution_unit* context) {
  const auto mid = x->mid;
  const auto who = x->sender;
  auto what = x->move_content_to_message();
  if (!mid.is_response()) {
    if (auto to = client(); to && !what.match_elements<caf::exit_msg>() && !what.match_elements<caf::down_msg>())
      to->enqueue(who, mid, std::move(what), context);
    return;
  }
  if (auto proxy = caf::actor_cast<caf::strong_actor_ptr>(proxy_))
    static_cast<coordinator_proxy&>(*proxy->get()).answer(*this, mid, std::move(what), who, context);
}

coordinator_proxy* proxy_in(const coordinator_actor& coordinator) {
  return coordinator ? dynamic_cast<coordinator_proxy*>(caf::actor_cast<caf::abstract_actor*>(coordinator)) : nullptr;
}

} // namespace

coordinator_actor make_coordinator_proxy(caf::actor_system& system, const found_coordinator& coordinator,
                                         coordinator_way way) {
  ensure(static_cast<bool>(coordinator.handle), "a proxy stands for a coordinator");
  ensure(!way.addresses.empty() || way.look, "a coordinator is looked for somewhere");
  caf::actor_config config;
  auto proxy = caf::make_actor<coordinator_proxy, caf::strong_actor_ptr>(system.next_actor_id(), system.node(), &system,
                                                                         config, coordinator, std::move(way));
  static_cast<coordinator_proxy&>(*proxy->get()).start(coordinator.handle);
  return caf::actor_cast<coordinator_actor>(proxy);
}

caf::expected<found_coordinator> find_coordinator(caf::actor_system& system, const endpoint& where,
                                                  const proto::ClusterIdentity* expected, caf::timespan limit) {
  auto found = connect_to(system, where, limit);
  if (!found)
    return with_context("there is no coordinator", found.error());
  TRY(handle, taken_as<coordinator_actor>(*found, system, text_of(where), "coordinator"));
  TRY(identity, greet(system, *handle, expected, std::max<caf::timespan>(limit, std::chrono::seconds{1})));
  return found_coordinator{std::move(*handle), std::move(*identity), where};
}

bool is_elsewhere(const coordinator_actor& coordinator, const caf::actor_system& system) {
  return coordinator.node() != system.node() || proxy_in(coordinator) != nullptr;
}

void notify_of_return(const coordinator_actor& coordinator, const node_actor& node) {
  if (auto* proxy = proxy_in(coordinator))
    proxy->add_listener(node);
}

caf::expected<proto::ClusterIdentity> greet(caf::actor_system& system, const coordinator_actor& coordinator,
                                            const proto::ClusterIdentity* expected, caf::timespan limit) {
  proto::GreetingRequest request;
  if (expected != nullptr)
    *request.mutable_expected() = *expected;
  caf::scoped_actor self{system};
  caf::expected<proto::ClusterIdentity> result = caf::error{};
  self->request(coordinator, limit, std::move(request))
    .receive(
      [&](const proto::GreetingResponse& x) {
        if (auto problem = error_in(x))
          result = std::move(problem);
        else
          result = x.cluster();
      },
      [&](const caf::error& problem) {
        result = problem == caf::sec::request_timeout
                   ? make_error(errc::timed_out, fmt::format("the coordinator did not answer a greeting within {}",
                                                             duration_text(limit)))
                   : make_error(errc::unreachable, fmt::format("the coordinator ended before it had answered a "
                                                               "greeting: {}",
                                                               render(problem)));
      });
  return result;
}

} // namespace ringmaster
