#pragma once

#include <ringmaster/strategy.hpp>

namespace ringmaster::training {

// The programs of examples/puzzles/puzzle_N.cpp, which a reader writes.
strategy puzzle_0(rank& self, const model& m);
strategy puzzle_1(rank& self, const model& m);
strategy puzzle_2(rank& self, const model& m);
strategy puzzle_3(rank& self, const model& m);
strategy puzzle_4(rank& self, const model& m);
strategy puzzle_5(rank& self, const model& m);
strategy puzzle_6(rank& self, const model& m);
strategy puzzle_7(rank& self, const model& m);

// Solutions of the puzzles that no built-in strategy solves: examples/puzzles/solution_N.cpp.
strategy solution_0(rank& self, const model& m);
strategy solution_1(rank& self, const model& m);

} // namespace ringmaster::training
