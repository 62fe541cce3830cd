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
  std::string_view task;          ///< In sentences.
  double reference_time = 0;      ///< What the original's own solution takes, in the puzzles' units;
  uint64_t reference_memory = 0;  ///< its largest rank holds so many elements.
  program stub = nullptr;         ///< The reader's.
  program solution = nullptr;     ///< Ours,
  std::string_view solution_file; ///< which is written here.

  std::string stub_file() const { return "examples/puzzles/puzzle_" + std::to_string(number) + ".cpp"; }
};

/// All, by number.
std::span<const puzzle> puzzles();

} // namespace ringmaster
