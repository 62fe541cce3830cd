#pragma once

#include <ringmaster/collectives.hpp>
#include <ringmaster/schedule.hpp>
#include <ringmaster/strategy.hpp>

#include <memory>

namespace RINGMASTER_API {

/// A network between ranks. Each rank has one port out and one port in.
struct network_model {
  double latency_s = 5e-6;       ///< Seconds from the last byte sent to the last byte received.
  double bandwidth = 50e9;       ///< Bytes a second of each port.
  double reduction_rate = 0;     ///< Bytes a second that a rank reduces; 0: no limit.
  std::vector<uint32_t> hosts{}; ///< By rank, the number of its host; empty: all on one.
};

/// A collective in virtual time.
struct simulated_collective {
  double seconds = 0;         ///< Until the last rank has finished.
  uint64_t messages = 0;      ///< Of all ranks.
  uint64_t bytes = 0;         ///< Of all messages.
  std::string busiest_port{}; ///< The port that was occupied longest.
  double busiest_share = 0;   ///< Part of the time in which it was occupied.
};

/// Simulates an algorithm over a network, message by message. `element_bytes`: size of an element. Errors:
/// invalid_argument for an unknown algorithm, a request or network that makes no sense. Thread-safe.
expected<simulated_collective> simulate_collective(collective_kind kind, std::string_view algorithm,
                                                   const plan_request& request, uint64_t element_bytes,
                                                   const network_model& network = {});

/// A training step in virtual time.
class simulated_step {
public:
  double time = 0;                   ///< Start of the last event, in the cost model's unit ("lab": seconds).
  double bubble_fraction = 0;        ///< Part of all ranks' time in which they wait.
  double communication_fraction = 0; ///< Part of all ranks' time in which they communicate.
  uint64_t peak_memory = 0;          ///< Of the rank that holds most, in the cost model's unit ("lab": elements).

  /// The step as an SVG picture. Errors: invalid_argument for more than 32 ranks or a step without events.
  expected<std::string> svg(std::string_view title) const;
  /// The step as JSON for ui.perfetto.dev. Errors: out_of_range where it has more than 64 MiB.
  expected<std::string> trace() const;

  struct state;                          ///< Internal.
  std::shared_ptr<const state> events{}; ///< Internal.
};

/// What operations take and hold in a simulated step.
enum class step_costs : uint8_t {
  lab,    ///< The DL-training lab of a graduate course: a GPU of 1000 TFLOP/s; seconds, elements of 2 bytes.
  puzzles ///< LLM training puzzles (Rush 2023): abstract time, elements.
};

/// Runs a strategy on every rank in virtual time. `with_events`: keep them for `svg` and `trace`. Deterministic.
/// Errors: invalid_argument where an operation refuses its arguments, ranks call different collectives, wait for each
/// other in a circle, or the result is not the whole model. Thread-safe.
expected<simulated_step> simulate_step(strategy_program program, const training::model& trained, uint32_t ranks,
                                       step_costs costs = step_costs::lab, bool with_events = false);

} // namespace RINGMASTER_API
