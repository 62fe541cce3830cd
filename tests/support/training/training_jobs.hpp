#pragma once

#include "training/computed/training_job.hpp"
#include "training/layers/plain_layers.hpp"

#include <cmath>

namespace ringmaster::training {

/// Samples without a pattern, the same in every run: a sample depends only on its number.
class scattered_samples final : public batch_source {
public:
  scattered_samples(uint64_t width, uint32_t classes, uint64_t global_batch)
    : width_(width), classes_(classes), global_batch_(global_batch) {}

  caf::error fill(uint64_t step, range samples, std::span<float> inputs, std::span<uint32_t> labels) const override {
    for (auto i = samples.begin; i < samples.end; ++i) {
      const auto number = step * global_batch_ + i, at = i - samples.begin;
      for (uint64_t j = 0; j < width_ && !inputs.empty(); ++j)
        inputs[at * width_ + j] = static_cast<float>(std::sin(static_cast<double>(number * width_ + j) * 12.9898));
      if (!labels.empty())
        labels[at] = static_cast<uint32_t>(number * number % 7 % classes_);
    }
    return caf::none;
  }

private:
  uint64_t width_;
  uint32_t classes_;
  uint64_t global_batch_;
};

/// A small model with layers that ranks can share, cut as this strategy wants; in float64.
inline training_job small_job(std::string_view of, uint32_t layers, uint64_t global_batch, uint64_t micro_batch,
                              optimizer_kind by = optimizer_kind::adam) {
  constexpr uint64_t width = 8;
  constexpr uint32_t classes = 9;
  training_job job;
  job.shape.layers = layers;
  job.shape.global_batch = global_batch;
  job.shape.micro_batch = micro_batch;
  job.shape.uneven = true;
  job.shape.replicated = true;
  job.shape.for_real = true;
  job.strategy = strategy_of(of);
  job.as = precision::float64;
  for (uint32_t i = 0; i + 1 < layers; ++i)
    if (i % 2 == 0 && !job.strategy->by_columns)
      job.layers.push_back(feed_forward(width, 10, nonlinearity::tanh));
    else
      job.layers.push_back(linear(width, width, i % 2 == 0 ? nonlinearity::tanh : nonlinearity::none));
  job.layers.push_back(linear(width, classes, nonlinearity::relu));
  job.layers = *layers_for(*job.strategy, std::move(job.layers));
  job.update = {.kind = by, .rate = 0.01, .weight_decay = 0.01};
  job.seed = 5;
  job.data = std::make_shared<scattered_samples>(width, classes, global_batch);
  return job;
}

} // namespace ringmaster::training
