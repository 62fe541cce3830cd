// A model tried on what was held out.
#include "runtime/training/computed/evaluation.hpp"
#include "runtime/training/data/synthetic_digits.hpp"
#include "runtime/training/layers/plain_layers.hpp"

#include <doctest/doctest.h>

using namespace ringmaster::training;

TEST_CASE("evaluation: whoever asks for an end has what was tried by then") {
  training_job job;
  job.as = precision::float32;
  job.layers = {linear(784, 10, nonlinearity::none)};
  const synthetic_digits digits{1, 0, 500};
  const std::vector<std::byte> weights(job.layers[0]->elements({}) * sizeof(float));
  const std::vector<std::span<const std::byte>> views{weights};
  CHECK(evaluate(job, views, digits).samples == 500);
  CHECK(evaluate(job, views, digits, 100).samples == 100);
  std::vector<uint32_t> asked;
  auto goes_on = [&](uint32_t tried) {
    asked.push_back(tried);
    return tried < 200;
  };
  const auto some = evaluate(job, views, digits, 500, goes_on);
  REQUIRE(!asked.empty());
  CHECK(asked.back() >= 200);
  CHECK(some.samples == asked.back());
  CHECK(some.samples < 500);
}
