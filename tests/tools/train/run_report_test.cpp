#include "tools/train/run_report.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace std::chrono_literals;

namespace {

std::map<uint64_t, training::step_report> steps_every(std::chrono::milliseconds each, uint64_t count) {
  std::map<uint64_t, training::step_report> result;
  for (uint64_t i = 0; i < count; ++i) {
    auto& its = result[i];
    its.loss = 0.5;
    its.seconds = 0.25;
    its.ended_at = std::chrono::steady_clock::time_point{1h} + i * each;
  }
  return result;
}

} // namespace

TEST_CASE("step text: the loss, and the samples a second of the latest steps") {
  CHECK(step_text(steps_every(10ms, 1), 0, 8, false) == "loss 0.5000, 32 samples/s");
  CHECK(step_text(steps_every(10ms, 1), 0, 8, true) == "0.721 bits a byte, 32 samples/s");
  CHECK(step_text(steps_every(10ms, 3), 2, 8, false) == "loss 0.5000, 800 samples/s");
  auto steps = steps_every(10ms, 100);
  for (auto& [step, each] : steps)
    if (step < 70)
      each.ended_at -= 10s; // the run was slow then
  CHECK(step_text(steps, 99, 8, false) == "loss 0.5000, 800 samples/s");
}
