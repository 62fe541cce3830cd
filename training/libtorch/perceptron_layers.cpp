#include "runtime/schedule/collective.hpp"
#include "training/libtorch/libtorch_calls.hpp"
#include "training/libtorch/libtorch_models.hpp"

#include <torch/torch.h>

namespace ringmaster::training {

namespace {

/// y = f(x) W + b, or what some rows of W make of it, where the first rank adds b, or some columns. Its gradients are
/// written where they are to lie, which autograd cannot.
class linear_of_libtorch final : public layer {
public:
  linear_of_libtorch(uint64_t inputs, uint64_t outputs, nonlinearity f) : plain_(linear(inputs, outputs, f)), f_(f) {}
  linear_of_libtorch(std::shared_ptr<const layer> plain, nonlinearity f) : plain_(std::move(plain)), f_(f) {}

  std::string name() const override { return plain_->name(); }
  std::string_view making() const override { return "libtorch"; }
  uint64_t inputs() const override { return plain_->inputs(); }
  uint64_t outputs() const override { return plain_->outputs(); }
  std::span<const parameter> parameters() const override { return plain_->parameters(); }
  std::shared_ptr<const layer> by_columns() const override {
    return std::make_shared<linear_of_libtorch>(plain_->by_columns(), f_);
  }
  bool makes_columns() const override { return plain_->makes_columns(); }

  void forward(const pass& at, const std::byte* x, const std::byte* w, std::byte* y) const override {
    said_by(name(), [&] {
      const c10::InferenceMode no_graph;
      const views its{*this, at, x, w};
      auto to = view_of(y, {its.samples, its.outputs}, its.type);
      if (its.adds_bias)
        at::addmm_out(to, its.bias, active(its.mine), its.weight);
      else
        at::mm_out(to, active(its.mine), its.weight);
    });
  }

  void backward(const pass& at, const std::byte* x, const std::byte* w, const std::byte* by_output,
                std::byte* by_weight, std::byte* by_input) const override {
    said_by(name(), [&] {
      const c10::InferenceMode no_graph;
      const views its{*this, at, x, w};
      const auto g = view_of(by_output, {its.samples, its.outputs}, its.type);
      const auto f = active(its.mine);
      if (by_weight != nullptr) {
        views by{*this, at, x, by_weight};
        at::mm_out(by.weight, f.t(), g);
        its.adds_bias ? at::sum_out(by.bias, g, 0) : by.bias.zero_();
      }
      if (by_input == nullptr)
        return;
      auto all = view_of(by_input, {its.samples, its.inputs}, its.type);
      if (its.count < its.inputs)
        all.zero_();
      auto to = all.narrow(1, its.first, its.count);
      at::mm_out(to, g, its.weight.t());
      if (f_ == nonlinearity::relu)
        at::threshold_backward_out(to, to, its.mine, 0);
      else if (f_ == nonlinearity::tanh)
        at::tanh_backward_out(to, to, f);
    });
  }

private:
  /// What lies where, on one rank.
  struct views {
    views(const linear_of_libtorch& of, const pass& at, const std::byte* x, const std::byte* w)
      : samples(static_cast<int64_t>(at.samples)), inputs(static_cast<int64_t>(of.inputs())),
        outputs(static_cast<int64_t>(of.outputs())), type(scalar_of(at.as)) {
      const auto by_columns = of.makes_columns();
      const auto its = block_of({}, by_columns ? of.outputs() : of.inputs(), at.tensor.count, at.tensor.index);
      first = by_columns ? 0 : static_cast<int64_t>(its.offset);
      count = by_columns ? inputs : static_cast<int64_t>(its.count);
      outputs = by_columns ? static_cast<int64_t>(its.count) : outputs;
      adds_bias = by_columns || at.tensor.index == 0;
      mine = view_of(x, {samples, inputs}, type).narrow(1, first, count);
      weight = view_of(w, {count, outputs}, type);
      bias = view_of(w + weight.nbytes(), {outputs}, type);
    }
    int64_t samples, inputs, outputs; ///< Those that it makes.
    torch::ScalarType type;
    bool adds_bias = false;
    int64_t first = 0, count = 0; ///< Of its rows of the weight, and columns of x.
    torch::Tensor mine, weight, bias;
  };

  torch::Tensor active(const torch::Tensor& x) const {
    return f_ == nonlinearity::relu ? at::relu(x) : f_ == nonlinearity::tanh ? at::tanh(x) : x;
  }

  std::shared_ptr<const layer> plain_; ///< Its parameters are these.
  nonlinearity f_;
};

} // namespace

std::unique_ptr<const layer> libtorch_linear(uint64_t inputs, uint64_t outputs, nonlinearity f) {
  return std::make_unique<linear_of_libtorch>(inputs, outputs, f);
}

model_layers libtorch_perceptron(std::span<const uint64_t> sizes, nonlinearity f) {
  model_layers result;
  for (size_t i = 0; i + 1 < sizes.size(); ++i)
    result.push_back(libtorch_linear(sizes[i], sizes[i + 1], i == 0 ? nonlinearity::none : f));
  return result;
}

} // namespace ringmaster::training
