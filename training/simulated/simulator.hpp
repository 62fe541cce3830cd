#pragma once

#include "training/simulated/cost_model.hpp"

#include <caf/expected.hpp>

#include <functional>
#include <string>
#include <vector>

namespace ringmaster::training {

/// One operation that took place, in the cost model's units.
struct event {
  op what{};
  bool aside = false; ///< On the rank's second stream.
  uint32_t rank = 0;
  uint32_t peer = 0; ///< Of send and receive.
  uint32_t layer = 0;
  range samples; ///< The first range of them; empty where the operation has none.
  double start = 0;
  double duration = 0;
  uint64_t memory = 0; ///< Held at the start, before its result exists; of what is aside, later.
};

struct rank_outcome {
  double last_start = 0; ///< Of the last event.
  double end = 0;
  double compute = 0;       ///< Time in loading, forward, backward, loss and update.
  double communication = 0; ///< Time in collectives, sending and receiving, and for those aside, as long as they take
                            ///< themselves; the rest of the time it waits.
  double aside = 0;         ///< Time of what went on beside that, on the second stream.
  uint64_t peak_memory = 0;
  double peak_at = 0; ///< When the first event with it starts.
};

struct training_outcome {
  double time = 0; ///< The latest start of a rank's last event, as the published laboratories report.
  double end = 0;
  uint32_t peak_rank = 0;
  double bubble_fraction = 0;        ///< Of all ranks' time until the end: waiting.
  double communication_fraction = 0; ///< Of the same.
  uint64_t operations = 0;
  uint64_t memory_left = 0; ///< Held when all strategies had ended; 0, or values have leaked.
  std::vector<rank_outcome> ranks;
  std::vector<event> events; ///< In the order in which they were simulated; where asked for.
};

/// Told now and then how many operations have been simulated; ends the simulation, as an error, by answering false.
using training_watch = std::function<bool(uint64_t operations)>;

using strategy_function = std::function<strategy(rank&)>;

/// Runs a strategy on every rank of a world in virtual time. The clocks are the published laboratories': a rank does
/// one thing at a time; a collective starts for all at the latest one's time; a receive starts no earlier than the
/// send.
/// Deterministic: the outcome does not depend on the order in which ranks are resumed.
/// Errors: what an operation refuses, ranks that call different collectives, a circle of ranks that wait for each
/// other, a result that is not the whole model at step 1; more operations than `operations_max`; and more than ten
/// million events, where they are asked for.
caf::expected<training_outcome> simulate(const strategy_function& program, const model& trained, uint32_t world_size,
                                         const cost_model& costs, bool with_events = false,
                                         uint64_t operations_max = 1'000'000'000, const training_watch& watch = {});

} // namespace ringmaster::training
