#pragma once

#include "actors/calls/request_peer.hpp"
#include "messages/errc.hpp"
#include "runtime/coordination/fair_queues.hpp"

#include <caf/mailbox_element.hpp>
#include <caf/make_message.hpp>
#include <caf/scheduled_actor.hpp>

#include <fmt/format.h>

#include <mutex>
#include <optional>
#include <utility>

namespace ringmaster {

/// Limits of a peer's requests that have not been handled; see `request_peer`.
struct inbox_limits {
  using peer_limits = fair_queues<request_peer, caf::mailbox_element_ptr>::limits;

  peer_limits process;              ///< Of another process.
  std::optional<peer_limits> actor; ///< Of an actor of this process; none: not limited.
};

/// An actor that serves its peers round-robin (`fair_queues`): one peer that sends 200,000 requests delays those of
/// another one by a few. Requests beyond the limits are refused at once with `too_many`. Other messages go straight to
/// the mailbox: reports of ranks must not wait for requests of clients.
template <class Base>
class fair_inbox : public Base {
public:
  fair_inbox(caf::actor_config& cfg, const inbox_limits& limits) : Base(cfg), limits_(limits) {}

  using Base::enqueue;

  void enqueue(caf::mailbox_element_ptr x, caf::execution_unit* context) override {
    using place = queues::place;
    const auto peer = peer_of(*x);
    if (!peer)
      return Base::enqueue(std::move(x), context);
    const auto& most = peer->is_here() ? *limits_.actor : limits_.process;
    auto where = place::mailbox;
    {
      std::scoped_lock lock{mutex_};
      if (!ended_)
        where = waiting_.add(*peer, x, most);
    }
    if (where == place::mailbox)
      Base::enqueue(std::move(x), context);
    else if (where == place::nowhere)
      refuse(*x, most, context);
  }

  caf::invoke_message_result consume(caf::mailbox_element& x) override {
    const auto peer = peer_of(x);
    handles(peer.value_or(request_peer{}));
    const auto problem = admits(x);
    if (problem)
      answer(x, problem, this->context());
    const auto result = problem ? caf::invoke_message_result::consumed : Base::consume(x);
    if (peer && result != caf::invoke_message_result::skipped)
      follow(*peer);
    return result;
  }

  bool cleanup(caf::error&& why, caf::execution_unit* context) override {
    const auto result = Base::cleanup(std::move(why), context);
    std::vector<caf::mailbox_element_ptr> left;
    {
      std::scoped_lock lock{mutex_};
      ended_ = true;
      left = waiting_.take_all();
    }
    for (auto& x : left)
      Base::enqueue(std::move(x), context); // is answered with the actor's exit reason
    return result;
  }

protected:
  /// Whether the request waits its turn. Others go straight to the mailbox.
  virtual bool waits_its_turn(const caf::mailbox_element&) const { return true; }
  /// The next message is a request of this peer, or, for an empty peer, no request or not limited.
  virtual void handles(const request_peer&) {}
  /// Called then. An error is the answer, and the message is not handled.
  virtual caf::error admits(const caf::mailbox_element&) { return caf::none; }

private:
  using queues = fair_queues<request_peer, caf::mailbox_element_ptr>;

  /// None: it is not limited.
  std::optional<request_peer> peer_of(const caf::mailbox_element& x) const {
    if (!x.mid.is_request() || !x.sender || x.sender == this->ctrl() || !waits_its_turn(x))
      return std::nullopt;
    auto result = request_peer::of(x.sender, this->ctrl()->node());
    if (result.is_here() && !limits_.actor)
      return std::nullopt;
    return result;
  }

  /// One of this peer's requests has been handled.
  void follow(const request_peer& peer) {
    std::optional<caf::mailbox_element_ptr> next;
    {
      std::scoped_lock lock{mutex_};
      next = waiting_.handled(peer);
    }
    if (next)
      Base::enqueue(std::move(*next), this->context());
  }

  void refuse(const caf::mailbox_element& x, const inbox_limits::peer_limits& most, caf::execution_unit* context) {
    auto why = make_error(errc::too_many,
                          fmt::format("{} requests of this client wait at the {} already, its limit: send more when "
                                      "some have been answered",
                                      most.in_mailbox + most.waiting_max, this->name()));
    answer(x, std::move(why), context);
  }

  void answer(const caf::mailbox_element& x, caf::error why, caf::execution_unit* context) {
    if (x.mid.is_request() && x.sender)
      x.sender->enqueue(caf::strong_actor_ptr{this->ctrl()}, x.mid.response_id(), caf::make_message(std::move(why)),
                        context);
  }

  const inbox_limits limits_;
  std::mutex mutex_; ///< Requests come on any thread.
  queues waiting_;
  bool ended_ = false;
};

} // namespace ringmaster
