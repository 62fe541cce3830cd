#pragma once

#include "tests/support/simulated_cluster.hpp"

namespace ringmaster::test {

/// A coordinator in front of the cluster's: what the handlers that `handlers(self, host)` makes do not take goes on to
/// that.
template <class Handlers>
coordinator_actor front_of(simulated_cluster& cluster, Handlers handlers) {
  auto behave = [handlers](caf::event_based_actor* self, const caf::actor& host) -> caf::behavior {
    self->set_default_handler([host](caf::scheduled_actor* me, caf::message_view& x) -> caf::result<caf::message> {
      return me->delegate(host, x.move_content_to_message());
    });
    return handlers(self, host);
  };
  return caf::actor_cast<coordinator_actor>(cluster.sys.spawn(behave, caf::actor_cast<caf::actor>(cluster.host)));
}

/// One that loses the first `count` of such requests.
template <class Request, class Response>
coordinator_actor losing(simulated_cluster& cluster, uint32_t count) {
  return front_of(cluster, [count](caf::event_based_actor* self, const caf::actor& host) -> caf::behavior {
    auto left = std::make_shared<uint32_t>(count);
    return {[self, host, left](const Request& x) -> caf::result<Response> {
      if (*left == 0) {
        self->delegate(host, x);
        return caf::delegated<Response>{};
      }
      --*left;
      return self->make_response_promise<Response>(); // which nobody keeps
    }};
  });
}

} // namespace ringmaster::test
