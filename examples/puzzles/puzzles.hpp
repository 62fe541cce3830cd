// The eight LLM training puzzles (Sasha Rush, 2023). Each puzzle_N.cpp has a task and an empty program. Write it, then
//
//   ./run build && build/release/ringmaster puzzles N
//
// prints what is wrong with it, or how long it takes and how much memory a rank holds. The program runs on every rank
// of the puzzle's world. docs/strategies.md has a whole one; <ringmaster/strategy/rank.hpp> has the operations.
#pragma once

#include <ringmaster/strategy.hpp>

namespace ringmaster::training {

strategy puzzle_0(rank& self, const model& m);
strategy puzzle_1(rank& self, const model& m);
strategy puzzle_2(rank& self, const model& m);
strategy puzzle_3(rank& self, const model& m);
strategy puzzle_4(rank& self, const model& m);
strategy puzzle_5(rank& self, const model& m);
strategy puzzle_6(rank& self, const model& m);
strategy puzzle_7(rank& self, const model& m);

/// Solutions of the puzzles that no built-in strategy solves.
strategy solution_0(rank& self, const model& m);
strategy solution_1(rank& self, const model& m);

} // namespace ringmaster::training
