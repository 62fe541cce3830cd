#pragma once

#include <ringmaster/strategy/rank.hpp>

#include <span>
#include <string>
#include <string_view>

namespace ringmaster {

/// One of the LLM training puzzles (Sasha Rush, 2023): a strategy to write.
struct puzzle {
  using program = training::strategy (*)(training::rank& self, const training::model& m);

  uint32_t number = 0;
  std::string_view name;
  uint32_t ranks = 1;
  training::model trained;
  std::string_view task;          ///< The puzzle's text.
  double reference_time = 0;      ///< The original solution's time, in the puzzles' units.
  uint64_t reference_memory = 0;  ///< The elements of the original solution's largest rank.
  program stub = nullptr;         ///< The user's program.
  program solution = nullptr;     ///< The project's solution,
  std::string_view solution_file; ///< and its file.

  std::string stub_file() const { return "examples/puzzles/puzzle_" + std::to_string(number) + ".cpp"; }
};

/// All puzzles, by number.
std::span<const puzzle> puzzles();

} // namespace ringmaster
