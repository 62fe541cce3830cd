#pragma once

#include <cstdlib>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <functional>
#include <optional>
#include <string>

namespace ringmaster::test {

/// What came of a seed.
struct played_seed {
  std::string problem;   ///< Empty: all was as it must be.
  uint64_t digest = 0;   ///< Of its history.
  bool failed = false;   ///< An operation ended in a stated failure.
  bool reran = false;    ///< A new epoch was opened.
  uint64_t judged = 0;   ///< Operations whose results were compared.
  uint64_t unjudged = 0; ///< Operations that ended and of which no rank was left to be read.
};

inline uint64_t number_from(const char* variable, uint64_t otherwise) {
  auto text = std::getenv(variable);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

/// The default number of seeds; with AddressSanitizer, which is many times slower, fewer.
#ifdef __SANITIZE_ADDRESS__
constexpr uint64_t seeds_played = 400;
#else
constexpr uint64_t seeds_played = 2000;
#endif

/// Plays every seed from 1 up, RINGMASTER_SEEDS of them, and each of `twice_every` a second time, whose history
/// must be the same. RINGMASTER_SEED replays one and prints its history. Returns in how many of a hundred an
/// epoch was opened; nullopt where one was replayed.
inline std::optional<uint64_t> play_seeds(const std::function<played_seed(uint64_t seed, bool print)>& play,
                                          uint64_t twice_every) {
  if (auto seed = number_from("RINGMASTER_SEED", 0); seed != 0) {
    CHECK(play(seed, true).problem == "");
    return std::nullopt;
  }
  auto seeds = number_from("RINGMASTER_SEEDS", seeds_played);
  uint64_t reran = 0, failed = 0, judged = 0, unjudged = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    auto result = play(seed, false);
    if (!result.problem.empty())
      FAIL_CHECK(fmt::format("seed {}: {}\n  replay it: ./run test --seed {}", seed, result.problem, seed));
    reran += result.reran;
    failed += result.failed;
    judged += result.judged;
    unjudged += result.unjudged;
    if (seed % twice_every == 0 && play(seed, false).digest != result.digest)
      FAIL_CHECK(fmt::format("seed {} has another history the second time\n  replay it: ./run test --seed {}", seed,
                             seed));
  }
  MESSAGE(fmt::format("{} seeds, {} with a new epoch, {} that ended in a stated failure{}", seeds, reran, failed,
                      judged + unjudged == 0 ? ""
                                             : fmt::format("; {} operations judged, {} that could not be judged: all "
                                                           "devices that took part were lost",
                                                           judged, unjudged)));
  CHECK(unjudged * 5 <= judged); // or the seeds show too little
  return reran * 100 / seeds;
}

} // namespace ringmaster::test
