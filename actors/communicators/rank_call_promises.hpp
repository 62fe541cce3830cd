#pragma once

#include "actors/calls/answers.hpp"
#include "messages/interfaces.hpp"
#include "runtime/invariants/ensure.hpp"

#include <caf/exit_reason.hpp>
#include <caf/typed_response_promise.hpp>

#include <fmt/format.h>
#include <map>
#include <memory>
#include <utility>

namespace ringmaster {

/// The ranks' calls of a communicator that have not been answered, by ticket. They outlive its state: if the actor ends
/// without having answered them, they are answered with the reason.
class rank_call_promises {
public:
  using promise_type = caf::typed_response_promise<proto::RankCallResponse>;

  void add(uint64_t ticket, promise_type promise) {
    const bool is_new = open_->emplace(ticket, std::move(promise)).second;
    ensure(is_new, "a ticket is of one call");
  }
  void answer(uint64_t ticket, proto::RankCallResponse x) {
    auto call = open_->extract(ticket);
    ensure(!call.empty(), "a call is answered once");
    call.mapped().deliver(std::move(x));
  }

  /// To be called once.
  void answer_at_exit(communicator_actor::pointer self, communicator_id id) {
    self->attach_functor([calls = open_, id](const caf::error& reason) {
      const bool cluster_ends = reason == caf::exit_reason::user_shutdown; // the coordinator's reason
      for (auto& call : std::exchange(*calls, {}))
        call.second.deliver(
          make_error(cluster_ends ? errc::device_lost : errc::aborted,
                     fmt::format("communicator {} has {}: {}", id, cluster_ends ? "ended" : "failed", render(reason))));
    });
  }

private:
  using calls = std::map<uint64_t, promise_type>;
  std::shared_ptr<calls> open_ = std::make_shared<calls>();
};

} // namespace ringmaster
