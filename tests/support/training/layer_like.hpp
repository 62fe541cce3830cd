#pragma once

#include "training/layers/layer.hpp"

#include <algorithm>
#include <limits>

namespace ringmaster::test {

using namespace training;

/// A layer like another one, apart from overrides. Ranks do not share it by columns.
class layer_like : public layer {
public:
  explicit layer_like(std::shared_ptr<const layer> of) : of_(std::move(of)) {}

  std::string name() const override { return of_->name(); }
  uint64_t inputs() const override { return of_->inputs(); }
  uint64_t outputs() const override { return of_->outputs(); }
  std::span<const parameter> parameters() const override { return of_->parameters(); }
  void forward(const pass& at, const std::byte* x, const std::byte* w, std::byte* y) const override {
    of_->forward(at, x, w, y);
  }
  void backward(const pass& at, const std::byte* x, const std::byte* w, const std::byte* by_output,
                std::byte* by_weight, std::byte* by_input) const override {
    of_->backward(at, x, w, by_output, by_weight, by_input);
  }

private:
  std::shared_ptr<const layer> of_;
};

/// A layer whose outputs are NaN, always or only outside of training.
class numberless_layer final : public layer_like {
public:
  enum class where : uint8_t { always, untrained };
  numberless_layer(std::shared_ptr<const layer> of, where at) : layer_like(std::move(of)), where_(at) {}

  void forward(const pass& at, const std::byte* x, const std::byte* w, std::byte* y) const override {
    layer_like::forward(at, x, w, y);
    if (where_ == where::always || !at.trains) // float64
      std::ranges::fill(std::span{reinterpret_cast<double*>(y), at.samples * outputs()},
                        std::numeric_limits<double>::quiet_NaN());
  }

private:
  where where_;
};

} // namespace ringmaster::test
