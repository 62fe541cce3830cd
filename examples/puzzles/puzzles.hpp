// The eight LLM training puzzles (Sasha Rush, 2023). Each puzzle_N.cpp has a task and an empty program. Write it, then
//
//   ./run build && build/release/ringmaster puzzles N
//
// says what is wrong with it, or how long it takes and how much memory a rank holds. The program runs on every rank of
// the puzzle's world; docs/strategies.md shows a whole one, include/ringmaster/strategy/rank.hpp has the operations.
#pragma once

#include "training/strategies/strategies.hpp"

namespace ringmaster::training {

strategy puzzle_0(rank& self, const model& m);
strategy puzzle_1(rank& self, const model& m);
strategy puzzle_2(rank& self, const model& m);
strategy puzzle_3(rank& self, const model& m);
strategy puzzle_4(rank& self, const model& m);
strategy puzzle_5(rank& self, const model& m);
strategy puzzle_6(rank& self, const model& m);
strategy puzzle_7(rank& self, const model& m);

/// Ours, of the puzzles that no strategy of the table solves.
strategy solution_0(rank& self, const model& m);
strategy solution_1(rank& self, const model& m);

} // namespace ringmaster::training
