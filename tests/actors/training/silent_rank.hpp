#pragma once

#include "actors/training/interfaces.hpp"

#include <functional>

namespace ringmaster::test {

using namespace training;

using begin_function = std::function<void(const step_order&, rank_actor::pointer)>;

/// Reports that it is ready, and nothing else apart from what `begin` sends.
inline rank_actor::behavior_type silent_rank(rank_actor::pointer self, trainer_actor of, rank_ready word,
                                             begin_function begin) {
  self->send(of, std::move(word));
  return {[self, begin](const step_order& x) { begin(x, self); },
          [](const exchange_ended&) {},
          [](const room_wanted&) {},
          [](const part_found&) {},
          [self](const step_abandoned&) -> caf::result<uint64_t> { return self->make_response_promise<uint64_t>(); },
          [self](const run_over&) -> caf::result<uint64_t> { return self->make_response_promise<uint64_t>(); },
          [](const part_sought&) { return uint64_t{0}; },
          [self](const part_request&) -> caf::result<byte_block> { return self->make_response_promise<byte_block>(); },
          [](atom::resume, uint64_t) {}};
}

} // namespace ringmaster::test
