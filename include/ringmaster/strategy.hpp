#pragma once

#include <ringmaster/errors.hpp>
#include <ringmaster/strategy/rank.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster::training {

/// The contiguous samples of one of `parts` ranks, global_batch / parts each. With model::uneven the first ranks may
/// have one more.
range samples_of(const model& m, uint32_t part, uint32_t parts);
/// Micro-batches of each of `parts` ranks. All have the same number: a collective may follow each.
uint64_t micro_batch_count(const model& m, uint32_t parts);
/// Micro-batch `index` of the `count` into which a rank's samples are cut.
range micro_batch_of(const model& m, range samples, uint64_t count, uint64_t index);
/// The samples of one of `parts` ranks, in micro-batches.
std::vector<range> micro_batches(const model& m, uint32_t part, uint32_t parts);
/// Samples that no other rank has, in micro-batches.
std::vector<range> micro_batches(const model& m, range samples);
/// The contiguous layers of one of `parts` stages; the first stages have one more where they do not divide.
range layers_of(const model& m, uint32_t part, uint32_t parts);

} // namespace ringmaster::training

namespace RINGMASTER_API {

/// A training strategy: the coroutine that each rank runs in a step (docs/strategies.md).
using strategy_program = training::strategy (*)(training::rank& self, const training::model& m);

/// A strategy of your own, data parallel in its samples: each rank has global_batch / ranks of them.
struct strategy_definition {
  std::string_view name{};        ///< Must outlive the program.
  std::string_view what{};        ///< One line for people; must outlive the program.
  strategy_program run = nullptr; ///< What each rank does.
};

/// Registers a strategy beside the built-in ones, by whose names simulations, searches and training runs then find it.
/// Call it when the program starts, before other calls. Errors: invalid_argument for a name that is empty, "all" or
/// taken, and for a missing program. Not thread-safe.
expected<void> register_strategy(const strategy_definition& added);

/// Names of all strategies, registered ones included.
std::vector<std::string> strategy_names();

/// The program of a strategy. Errors: invalid_argument for an unknown name.
expected<strategy_program> program_of(std::string_view strategy);

} // namespace RINGMASTER_API
