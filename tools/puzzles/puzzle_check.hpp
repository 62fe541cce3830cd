#pragma once

#include "training/simulated/simulator.hpp"

#include <ringmaster/strategy/rank.hpp>

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <cstdint>
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

/// From none to best.
enum class verdict : uint8_t {
  not_written_yet, ///< No rank has begun anything.
  wrong,
  right, ///< It trains the whole model, but takes longer or holds more than the reference.
  solved,
};

/// The verdict on a program for a puzzle.
struct puzzle_result {
  verdict judged = verdict::not_written_yet;
  caf::error error; ///< Of a wrong one: what is wrong with it.
  double time = 0;  ///< Of a right one, as well as the peak memory.
  uint64_t peak_memory = 0;
  bool slower = false, larger = false; ///< Than the reference.
};

/// Runs it on the puzzle's world in virtual time, at the puzzles' costs.
puzzle_result check(const puzzle& which, const training::strategy_function& program);
puzzle_result check_stub(const puzzle& which);
/// The reader's program with all that its ranks did, to be shown. Errors: what is wrong with it; refused where it is
/// not written yet.
caf::expected<training::training_outcome> outcome_of_stub(const puzzle& which);
puzzle_result check_solution(const puzzle& which);

} // namespace ringmaster
