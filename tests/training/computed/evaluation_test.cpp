// A model tried on what was held out.
#include "training/computed/sampled_batches.hpp"

#include "messages/errc.hpp"
#include "training/data/synthetic_digits.hpp"
#include "training/layers/plain_layers.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>

using namespace ringmaster;
using namespace ringmaster::training;

TEST_CASE("evaluation: a stop request gets the result so far") {
  training_job job;
  job.as = precision::float32;
  job.layers = {linear(784, 10, nonlinearity::none)};
  const synthetic_digits digits{1, 0, 500};
  const std::vector<std::byte> weights(job.layers[0]->elements({}) * sizeof(float));
  const std::vector<std::span<const std::byte>> views{weights};
  CHECK(evaluate(job, views, digits)->samples == 500);
  CHECK(evaluate(job, views, digits, 100)->samples == 100);
  std::vector<uint32_t> asked;
  auto goes_on = [&](uint32_t tried) {
    asked.push_back(tried);
    return tried < 200;
  };
  const auto some = evaluate(job, views, digits, 500, goes_on);
  REQUIRE(!asked.empty());
  CHECK(asked.back() >= 200);
  CHECK(some->samples == asked.back());
  CHECK(some->samples < 500);
}

TEST_CASE("evaluation: however many samples are tried, they are spread over all, each once") {
  for (uint32_t count : {1u, 2u, 4u, 89u, 1000u}) {
    auto all = tried_samples(count, UINT32_MAX);
    std::ranges::sort(all);
    REQUIRE(all.size() == count);
    for (uint32_t i = 0; i < count; ++i)
      CHECK(all[i] == i);
  }
  CHECK(tried_samples(0, 5).empty());
  const auto whole = tried_samples(100'000, UINT32_MAX);
  for (size_t count : {10u, 100u, 1000u}) {
    const auto some = tried_samples(100'000, static_cast<uint32_t>(count));
    REQUIRE(some.size() == count);
    CHECK(std::ranges::equal(some, std::span{whole}.first(count)));
    for (uint32_t part = 0; part < 10; ++part) {
      const auto there = std::ranges::count_if(some, [&](uint32_t x) { return x / 10'000 == part; });
      CHECK(there >= static_cast<ptrdiff_t>(count / 10 - 1));
      CHECK(there <= static_cast<ptrdiff_t>(count / 10 + 1));
    }
  }
}

TEST_CASE("evaluation: samples that cannot be read are an error") {
  class unreadable final : public data_set {
  public:
    std::string name() const override { return "unreadable"; }
    uint32_t count() const override { return 3; }
    sample_shape shape() const override { return {1, 28, 28}; }
    uint32_t label_count() const override { return 10; }

  private:
    void fill_one(uint32_t, std::span<float>, std::span<uint32_t>) const override { throw std::runtime_error{"torn"}; }
  };
  training_job job;
  job.layers = {linear(784, 10, nonlinearity::none)};
  const std::vector<std::byte> weights(job.layers[0]->elements({}) * sizeof(float));
  const std::vector<std::span<const std::byte>> views{weights};
  CHECK(code_of(evaluate(job, views, unreadable{}).error()) == errc::io_error);
}
