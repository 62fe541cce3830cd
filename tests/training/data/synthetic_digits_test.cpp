#include "training/data/synthetic_digits.hpp"

#include "messages/errc.hpp"
#include "training/data/data_set.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

constexpr size_t digit_pixels = 784;

struct drawn_digits {
  std::vector<float> inputs;
  std::vector<uint32_t> labels;

  drawn_digits(const data_set& from, const std::vector<uint32_t>& samples)
    : inputs(samples.size() * digit_pixels), labels(samples.size()) {
    REQUIRE(!from.fill(samples, inputs, labels));
  }
  static drawn_digits first_of(const data_set& from, uint32_t count) {
    std::vector<uint32_t> samples(count);
    std::iota(samples.begin(), samples.end(), 0);
    return {from, samples};
  }
  std::span<const float> image(size_t i) const { return std::span{inputs}.subspan(i * digit_pixels, digit_pixels); }
};

/// The plainest that learns: a weight for each pixel and label, trained sample by sample on the cross entropy.
class softmax_regression {
public:
  void learn(const drawn_digits& from, float rate) {
    for (size_t i = 0; i < from.labels.size(); ++i) {
      auto wrong = guesses(from.image(i));
      wrong[from.labels[i]] -= 1;
      for (size_t label = 0; label < 10; ++label) {
        auto* weights = weights_[label].data();
        for (size_t j = 0; j < digit_pixels; ++j)
          weights[j] -= rate * wrong[label] * from.image(i)[j];
        biases_[label] -= rate * wrong[label];
      }
    }
  }

  double accuracy(const drawn_digits& on) const {
    size_t right = 0;
    for (size_t i = 0; i < on.labels.size(); ++i) {
      auto found = guesses(on.image(i));
      right += std::max_element(found.begin(), found.end()) - found.begin() == on.labels[i] ? 1 : 0;
    }
    return static_cast<double>(right) / static_cast<double>(on.labels.size());
  }

private:
  std::array<float, 10> guesses(std::span<const float> image) const {
    auto result = biases_;
    for (size_t label = 0; label < 10; ++label)
      result[label] = std::inner_product(image.begin(), image.end(), weights_[label].begin(), result[label]);
    const auto largest = *std::max_element(result.begin(), result.end());
    float sum = 0;
    for (auto& x : result)
      sum += x = std::exp(x - largest);
    for (auto& x : result)
      x /= sum;
    return result;
  }

  std::array<std::array<float, digit_pixels>, 10> weights_{};
  std::array<float, 10> biases_{};
};

} // namespace

TEST_CASE("synthetic digits: a sample is the same whatever was drawn before it, and on every machine") {
  auto digits = make_synthetic_digits(7);
  REQUIRE(digits);
  CHECK(digits->training->name() == "synthetic digits");
  CHECK(digits->training->shape().text() == "1x28x28");
  CHECK(digits->training->count() == 60'000);
  const drawn_digits there{*digits->training, {5, 59'999, 0}}, back{*digits->training, {0, 59'999, 5}};
  CHECK(std::ranges::equal(there.image(0), back.image(2)));
  CHECK(std::ranges::equal(there.image(2), back.image(0)));
  uint64_t digest = 0; // FNV-1a over the pixels as bytes, a figure that must never change
  for (auto x : there.inputs)
    digest = (digest ^ static_cast<uint64_t>(std::lround(x * 255))) * 0x100000001b3;
  CHECK(digest == 4481606558023381828);
  CHECK(there.labels == std::vector<uint32_t>{8, 7, 4});
}

TEST_CASE("synthetic digits: another seed, and what is held out, are other pictures") {
  auto one = make_synthetic_digits(1, 100, 100), two = make_synthetic_digits(2, 100, 100);
  auto first = drawn_digits::first_of(*one->training, 100), other = drawn_digits::first_of(*two->training, 100),
       held_out = drawn_digits::first_of(*one->held_out, 100);
  CHECK(first.inputs != other.inputs);
  CHECK(first.inputs != held_out.inputs);
  auto fewer = make_synthetic_digits(1, 50, 100);
  CHECK(drawn_digits::first_of(*fewer->held_out, 100).inputs == held_out.inputs);
}

TEST_CASE("synthetic digits: pixels are bytes over 255, and every label is there about as often") {
  auto digits = make_synthetic_digits(3);
  auto drawn = drawn_digits::first_of(*digits->training, 1000);
  std::array<int, 10> seen{};
  for (auto label : drawn.labels)
    ++seen[label];
  for (auto count : seen)
    CHECK(std::abs(count - 100) < 40);
  CHECK(std::ranges::all_of(drawn.inputs, [](float x) { return x >= 0 && x <= 1 && x == std::round(x * 255) / 255; }));
  const auto mean = std::accumulate(drawn.inputs.begin(), drawn.inputs.end(), 0.)
                    / static_cast<double>(drawn.inputs.size());
  CHECK(mean > 0.05);
  CHECK(mean < 0.25);
}

TEST_CASE("synthetic digits: a linear model learns most of them, and not all") {
  auto digits = make_synthetic_digits(11);
  const auto samples = drawn_digits::first_of(*digits->training, 2000),
             tried = drawn_digits::first_of(*digits->held_out, 1000);
  softmax_regression model;
  CHECK(model.accuracy(tried) < 0.2);
  for (auto rate : {.02f, .02f, .01f, .005f})
    model.learn(samples, rate);
  const auto accuracy = model.accuracy(tried);
  CHECK(accuracy > 0.85);
  CHECK(accuracy < 0.97);
}

TEST_CASE("synthetic digits: none, or more than there are numbers, are refused") {
  CHECK(code_of(make_synthetic_digits(1, 0).error()) == errc::invalid_argument);
  CHECK(code_of(make_synthetic_digits(1, 1, 0xffffffff).error()) == errc::invalid_argument);
}
