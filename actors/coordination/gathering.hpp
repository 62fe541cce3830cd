#pragma once

#include "messages/ids.hpp"
#include "runtime/coordination/communicator_registry.hpp"

#include <caf/typed_response_promise.hpp>

namespace ringmaster {

/// An answer of the COORDINATOR's that many have a part in: delivered when all have told theirs.
template <class Answer>
struct gathering {
  Answer answer;
  size_t waiting = 1; ///< For whoever asks them.
  caf::typed_response_promise<Answer> promise;

  void told() {
    if (--waiting == 0)
      promise.deliver(std::move(answer));
  }
};

/// What the coordinator knows of a communicator by itself, but for its members.
template <class About>
void describe(About& about, communicator_id id, const known_communicator& known) {
  about.set_comm_id(id.value);
  about.set_policy(known.policy);
  about.set_deterministic(known.deterministic);
  about.set_outlives_client(known.outlives_client);
  about.set_name(known.name);
}

} // namespace ringmaster
