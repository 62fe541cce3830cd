// Which samples a step takes, and those that are made once.
#include "training/computed/sampled_batches.hpp"

#include <doctest/doctest.h>

#include <numeric>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

/// Each sample is its number, in the first element of an input and as its label.
class numbers final : public data_set {
public:
  numbers(uint32_t count, uint32_t columns) : count_(count), columns_(columns) {}

  std::string name() const override { return "numbers"; }
  uint32_t count() const override { return count_; }
  sample_shape shape() const override { return {.columns = columns_}; }
  uint32_t label_count() const override { return count_; }

private:
  void fill_one(uint32_t sample, std::span<float> input, std::span<uint32_t> labels) const override {
    if (!input.empty())
      input[0] = static_cast<float>(sample);
    if (!labels.empty())
      labels[0] = sample;
  }

  uint32_t count_, columns_;
};

} // namespace

TEST_CASE("sampled batches: a step takes the sampler's samples, in any epoch, in every order of requests") {
  const sampler_options how{.samples = 20, .global_batch = 6};
  auto order = *sampler::of(how);
  const sampled_batches found{std::make_shared<numbers>(20, 1), *sampler::of(how)};
  std::vector<std::vector<uint32_t>> wanted;
  for (uint64_t step = 0; step < 3 * order.steps_an_epoch(); ++step) {
    const auto batch = order.batch(order.place_of(step));
    wanted.emplace_back(batch.begin(), batch.end());
  }
  REQUIRE(wanted.size() == 9);
  CHECK(wanted[0] != wanted[3]); // another epoch has another order
  for (auto step = wanted.size(); step-- > 0;)
    for (auto part : {range{0, 6}, range{2, 5}}) {
      std::vector<float> inputs(part.count());
      std::vector<uint32_t> labels(part.count());
      REQUIRE(!found.fill(step, part, inputs, labels));
      CHECK(std::ranges::equal(labels, std::span{wanted[step]}.subspan(part.begin, part.count())));
      CHECK(std::ranges::equal(labels, inputs));
    }
}

TEST_CASE("sampled batches: samples that are not remembered for want of room are the same") {
  constexpr uint32_t columns = 16 << 20; // 64 MiB each: three have room
  const remembered_data found{std::make_shared<numbers>(5, columns)};
  std::vector<float> input(columns);
  for (int twice = 0; twice < 2; ++twice)
    for (uint32_t sample = 0; sample < 5; ++sample) {
      uint32_t label = 99;
      REQUIRE(!found.fill({&sample, 1}, input, {&label, 1}));
      CHECK(input[0] == static_cast<float>(sample));
      CHECK(label == sample);
    }
}
