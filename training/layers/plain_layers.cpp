#include "training/layers/plain_layers.hpp"

#include "runtime/schedule/collective.hpp"
#include "training/layers/matrix_products.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ringmaster::training {

namespace {

template <class T>
void activate(nonlinearity f, const T* x, T* y, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i)
    y[i] = f == nonlinearity::relu ? std::max(x[i], T{}) : f == nonlinearity::tanh ? std::tanh(x[i]) : x[i];
}

/// Multiplies the gradient by f(x) by f's slope at x.
template <class T>
void slope(nonlinearity f, const T* x, T* gradient, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    if (f == nonlinearity::relu && x[i] <= 0)
      gradient[i] = 0;
    if (f == nonlinearity::tanh) {
      const auto y = std::tanh(x[i]);
      gradient[i] *= 1 - y * y;
    }
  }
}

template <class T>
void add_to_rows(const T* vector, matrix<T> to) {
  for (uint64_t i = 0; i < to.rows; ++i)
    for (uint64_t j = 0; j < to.columns; ++j)
      to.row(i)[j] += vector[j];
}

/// The gradient by a vector that was added to each row.
template <class T>
void sum_rows(matrix<const T> from, T* sums) {
  std::fill_n(sums, from.columns, T{});
  for (uint64_t i = 0; i < from.rows; ++i)
    for (uint64_t j = 0; j < from.columns; ++j)
      sums[j] += from.row(i)[j];
}

/// As PyTorch has it for linear layers.
double first_bound(uint64_t inputs) {
  return 1 / std::sqrt(static_cast<double>(inputs));
}

/// Calls the same by the type of numbers.
template <class Layer>
class typed_layer : public layer {
public:
  void forward(const pass& at, const std::byte* x, const std::byte* w, std::byte* y) const final {
    if (at.as == precision::float32)
      forward_as<float>(at, x, w, y);
    else
      forward_as<double>(at, x, w, y);
  }
  void backward(const pass& at, const std::byte* x, const std::byte* w, const std::byte* by_output,
                std::byte* by_weight, std::byte* by_input) const final {
    if (at.as == precision::float32)
      backward_as<float>(at, x, w, by_output, by_weight, by_input);
    else
      backward_as<double>(at, x, w, by_output, by_weight, by_input);
  }

private:
  template <class T>
  void forward_as(const pass& at, const std::byte* x, const std::byte* w, std::byte* y) const {
    static_cast<const Layer*>(this)->ahead(at, reinterpret_cast<const T*>(x), reinterpret_cast<const T*>(w),
                                           reinterpret_cast<T*>(y));
  }
  template <class T>
  void backward_as(const pass& at, const std::byte* x, const std::byte* w, const std::byte* by_output,
                   std::byte* by_weight, std::byte* by_input) const {
    static_cast<const Layer*>(this)->back(at, reinterpret_cast<const T*>(x), reinterpret_cast<const T*>(w),
                                          reinterpret_cast<const T*>(by_output), reinterpret_cast<T*>(by_weight),
                                          reinterpret_cast<T*>(by_input));
  }
};

class linear_layer final : public typed_layer<linear_layer> {
public:
  linear_layer(uint64_t inputs, uint64_t outputs, nonlinearity f, bool by_columns = false)
    : f_(f), by_columns_(by_columns),
      parameters_{{"weight", inputs, outputs, by_columns ? cut::columns : cut::rows, first_bound(inputs)},
                  {"bias", 1, outputs, by_columns ? cut::columns : cut::replicated, first_bound(inputs)}} {}

  std::string name() const override {
    return fmt::format("{}linear {}x{}", f_ == nonlinearity::none ? "" : fmt::format("{} ", name_of(f_)), inputs(),
                       outputs());
  }
  uint64_t inputs() const override { return parameters_[0].rows; }
  uint64_t outputs() const override { return parameters_[0].columns; }
  std::span<const parameter> parameters() const override { return parameters_; }
  std::shared_ptr<const layer> by_columns() const override {
    return std::make_shared<linear_layer>(inputs(), outputs(), f_, true);
  }
  bool makes_columns() const override { return by_columns_; }

  template <class T>
  void ahead(const pass& at, const T* x, const T* w, T* y) const {
    const auto mine = share(at);
    std::vector<T> active;
    matrix<T> to{y, at.samples, mine.columns};
    multiply<T>(input(at, x, active), {w + 0, mine.rows, mine.columns}, to);
    if (mine.adds_bias)
      add_to_rows(w + mine.rows * mine.columns, to);
  }

  template <class T>
  void back(const pass& at, const T* x, const T* w, const T* by_output, T* by_weight, T* by_input) const {
    const auto mine = share(at);
    const matrix<const T> g{by_output, at.samples, mine.columns};
    if (by_weight != nullptr) {
      std::vector<T> active;
      multiply_transposed_first<T>(input(at, x, active), g, {by_weight, mine.rows, mine.columns});
      auto* bias = by_weight + mine.rows * mine.columns;
      if (mine.adds_bias)
        sum_rows(g, bias);
      else
        std::fill_n(bias, mine.columns, T{});
    }
    if (by_input == nullptr)
      return;
    if (mine.rows < inputs())
      std::fill_n(by_input, at.samples * inputs(), T{});
    multiply_transposed_second<T>(g, {w, mine.rows, mine.columns},
                                  {by_input + mine.first_row, at.samples, mine.rows, inputs()});
    slope(f_, x, by_input, at.samples * inputs());
  }

private:
  /// What a rank has of the weight.
  struct held {
    uint64_t first_row, rows, columns;
    bool adds_bias; ///< To what it makes of the output.
  };
  held share(const pass& at) const {
    const auto mine = block_of({}, by_columns_ ? outputs() : inputs(), at.tensor.count, at.tensor.index);
    return by_columns_ ? held{0, inputs(), mine.count, true}
                       : held{mine.offset, mine.count, outputs(), at.tensor.index == 0};
  }
  /// What its rows of the weight are multiplied by.
  template <class T>
  matrix<const T> input(const pass& at, const T* x, std::vector<T>& active) const {
    if (f_ != nonlinearity::none) {
      active.resize(at.samples * inputs());
      activate(f_, x, active.data(), active.size());
      x = active.data();
    }
    const auto mine = share(at);
    return {x + mine.first_row, at.samples, mine.rows, inputs()};
  }

  nonlinearity f_;
  bool by_columns_;
  std::vector<parameter> parameters_;
};

class feed_forward_layer final : public typed_layer<feed_forward_layer> {
public:
  feed_forward_layer(uint64_t width, uint64_t hidden, nonlinearity f)
    : f_(f), parameters_{{"up.weight", width, hidden, cut::columns, first_bound(width)},
                         {"up.bias", 1, hidden, cut::columns, first_bound(width)},
                         {"down.weight", hidden, width, cut::rows, first_bound(hidden)},
                         {"down.bias", 1, width, cut::replicated, first_bound(hidden)}} {}

  std::string name() const override {
    return fmt::format("feed-forward {}x{} {}", inputs(), parameters_[0].columns, name_of(f_));
  }
  uint64_t inputs() const override { return parameters_[0].rows; }
  uint64_t outputs() const override { return inputs(); }
  std::span<const parameter> parameters() const override { return parameters_; }

  template <class T>
  void ahead(const pass& at, const T* x, const T* w, T* y) const {
    const auto p = places<T>(at, w);
    const auto h = hidden(at, x, p);
    std::vector<T> active(h.size());
    activate(f_, h.data(), active.data(), h.size());
    matrix<T> to{y, at.samples, inputs()};
    const bool adds = at.tensor.index == 0;
    if (adds) {
      std::copy_n(x, at.samples * inputs(), y);
      add_to_rows(p.down_bias, to);
    }
    multiply<T>({active.data(), at.samples, p.width}, {p.down, p.width, inputs()}, to, adds);
  }

  template <class T>
  void back(const pass& at, const T* x, const T* w, const T* by_output, T* by_weight, T* by_input) const {
    const auto p = places<T>(at, w);
    const auto h = hidden(at, x, p);
    const matrix<const T> g{by_output, at.samples, inputs()};
    std::vector<T> by_hidden(h.size());
    multiply_transposed_second<T>(g, {p.down, p.width, inputs()}, {by_hidden.data(), at.samples, p.width});
    slope(f_, h.data(), by_hidden.data(), h.size());
    const matrix<const T> gh{by_hidden.data(), at.samples, p.width};
    if (by_weight != nullptr)
      gradients(at, x, h, g, gh, by_weight);
    if (by_input == nullptr)
      return;
    multiply_transposed_second<T>(gh, {p.up, inputs(), p.width}, {by_input, at.samples, inputs()});
    for (uint64_t i = 0; at.tensor.index == 0 && i < at.samples * inputs(); ++i)
      by_input[i] += by_output[i];
  }

private:
  template <class T>
  struct parts {
    uint64_t width; ///< Of the hidden vector's part.
    const T *up, *up_bias, *down, *down_bias;
  };

  template <class T>
  parts<T> places(const pass& at, const T* w) const {
    const auto width = part_of(parameters_[0], at.tensor).columns;
    auto *bias = w + inputs() * width, *down = bias + width;
    return {width, w, bias, down, down + width * inputs()};
  }
  template <class T>
  std::vector<T> hidden(const pass& at, const T* x, const parts<T>& p) const {
    std::vector<T> result(at.samples * p.width);
    matrix<T> to{result.data(), at.samples, p.width};
    multiply<T>({x, at.samples, inputs()}, {p.up, inputs(), p.width}, to);
    add_to_rows(p.up_bias, to);
    return result;
  }
  template <class T>
  void gradients(const pass& at, const T* x, const std::vector<T>& h, matrix<const T> g, matrix<const T> gh,
                 T* by_weight) const {
    const auto p = places<T>(at, by_weight);
    auto place = [&](const T* of) { return by_weight + (of - by_weight); };
    std::vector<T> active(h.size());
    activate(f_, h.data(), active.data(), h.size());
    multiply_transposed_first<T>({x, at.samples, inputs()}, gh, {place(p.up), inputs(), p.width});
    sum_rows(gh, place(p.up_bias));
    multiply_transposed_first<T>({active.data(), at.samples, p.width}, g, {place(p.down), p.width, inputs()});
    if (at.tensor.index == 0)
      sum_rows(g, place(p.down_bias));
    else
      std::fill_n(place(p.down_bias), inputs(), T{});
  }

  nonlinearity f_;
  std::vector<parameter> parameters_;
};

} // namespace

std::string_view name_of(nonlinearity x) {
  return x == nonlinearity::relu ? "relu" : x == nonlinearity::tanh ? "tanh" : "none";
}

std::unique_ptr<const layer> linear(uint64_t inputs, uint64_t outputs, nonlinearity f) {
  return std::make_unique<linear_layer>(inputs, outputs, f);
}

std::unique_ptr<const layer> feed_forward(uint64_t width, uint64_t hidden, nonlinearity f) {
  return std::make_unique<feed_forward_layer>(width, hidden, f);
}

model_layers perceptron(std::span<const uint64_t> sizes, nonlinearity f) {
  model_layers result;
  for (size_t i = 0; i + 1 < sizes.size(); ++i)
    result.push_back(linear(sizes[i], sizes[i + 1], i == 0 ? nonlinearity::none : f));
  return result;
}

} // namespace ringmaster::training
