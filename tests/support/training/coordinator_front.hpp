#pragma once

#include "tests/support/simulated_cluster.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <utility>

namespace ringmaster::test {

/// A coordinator in front of the cluster's: messages that the handlers of `handlers(self, host)` do not take are passed
/// on.
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

/// A front that passes on the first `count` such requests late, or never.
template <class Request, class Response>
coordinator_actor delaying(simulated_cluster& cluster, uint32_t count, std::optional<caf::timespan> delay = {}) {
  return front_of(cluster, [count, delay](caf::event_based_actor* self, const caf::actor& host) -> caf::behavior {
    using late = std::pair<caf::typed_response_promise<Response>, Request>;
    auto kept = std::make_shared<std::deque<late>>();
    auto left = std::make_shared<uint32_t>(count);
    return {[self, host, kept, left, delay](const Request& x) -> caf::result<Response> {
              if (*left == 0) {
                self->delegate(host, x);
                return caf::delegated<Response>{};
              }
              --*left;
              kept->emplace_back(self->make_response_promise<Response>(), x);
              if (delay)
                self->delayed_send(self, *delay, atom::resume_v);
              return kept->back().first;
            },
            [host, kept](atom::resume) {
              auto& [promise, x] = kept->front();
              promise.delegate(caf::actor_cast<coordinator_actor>(host), std::move(x));
              kept->pop_front();
            }};
  });
}

} // namespace ringmaster::test
