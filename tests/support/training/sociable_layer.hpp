#pragma once

#include "runtime/training/layers/layer.hpp"

#include <memory>
#include <utility>

namespace ringmaster::test {

using namespace training;

/// A layer that learns of two samples at once at least.
class sociable_layer final : public layer {
public:
  explicit sociable_layer(std::shared_ptr<const layer> of) : of_(std::move(of)) {}

  std::string name() const override { return "sociable " + of_->name(); }
  uint64_t inputs() const override { return of_->inputs(); }
  uint64_t outputs() const override { return of_->outputs(); }
  std::span<const parameter> parameters() const override { return of_->parameters(); }
  uint64_t samples_min() const override { return 2; }
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

} // namespace ringmaster::test
