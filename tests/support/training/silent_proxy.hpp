#pragma once

#include "tests/support/simulated_cluster.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_proxy.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/make_actor.hpp>

#include <utility>

namespace ringmaster::test {

/// The coordinator as seen from another process in CAF 0.17: once its connection is closed, actors that monitor it get
/// a message, and requests are dropped without an answer.
class silent_proxy : public caf::actor_proxy {
public:
  silent_proxy(caf::actor_config& cfg, caf::actor target) : actor_proxy(cfg), target_(std::move(target)) {}

  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit* context) override {
    if (!closed_)
      caf::actor_cast<caf::abstract_actor*>(target_)->enqueue(std::move(what), context);
  }
  void kill_proxy(caf::execution_unit* context, caf::error reason) override {
    closed_ = true;
    cleanup(std::move(reason), context);
  }

private:
  caf::actor target_;
  bool closed_ = false;
};

/// The cluster's coordinator, as seen from another process.
class remote_coordinator {
public:
  explicit remote_coordinator(simulated_cluster& cluster) {
    caf::actor_config cfg;
    proxy_ = caf::make_actor<silent_proxy, caf::actor>(cluster.sys.next_actor_id(), cluster.sys.node(), &cluster.sys,
                                                       cfg, caf::actor_cast<caf::actor>(cluster.host));
  }
  ~remote_coordinator() { close(); }
  remote_coordinator(const remote_coordinator&) = delete;
  remote_coordinator& operator=(const remote_coordinator&) = delete;

  coordinator_actor handle() const { return caf::actor_cast<coordinator_actor>(proxy_); }
  void close() {
    static_cast<silent_proxy*>(caf::actor_cast<caf::abstract_actor*>(proxy_))
      ->kill_proxy(nullptr, caf::exit_reason::remote_link_unreachable);
  }

private:
  caf::actor proxy_;
};

} // namespace ringmaster::test
