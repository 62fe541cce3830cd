#pragma once

#include <ringmaster/errors.hpp>
#include <ringmaster/strategy/value.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ringmaster::training {

class layer; // internal

/// Type in which numbers are stored and computed.
enum class precision : uint8_t {
  float32, ///< IEEE 754 binary32.
  float64  ///< IEEE 754 binary64.
};

/// Bytes of a number.
constexpr uint64_t bytes_of(precision x) {
  return x == precision::float32 ? 4 : 8;
}

/// How tensor-parallel ranks share a parameter, a matrix that row vectors are multiplied with from the left (Shoeybi et
/// al., Megatron-LM, 2019).
enum class cut : uint8_t {
  replicated, ///< All ranks have it. The gradient that a rank computes is a summand.
  columns,    ///< Each rank has a block of its columns.
  rows        ///< Each rank has a block of its rows.
};

/// A parameter of a layer, row-major. A vector has one row.
struct parameter {
  std::string name;             ///< Unique in the layer.
  uint64_t rows = 1;            ///< Of the matrix.
  uint64_t columns = 1;         ///< Of the matrix.
  cut tensor = cut::replicated; ///< How ranks share it.
  double bound = 0;             ///< Initially uniform in [mean - bound, mean + bound).
  double mean = 0;              ///< Of the initial values.
  /// A statistic of the samples, such as batch norm's mean, that has no gradient. In the gradient's place is the
  /// statistic of these samples, as a part of the global batch's; an update moves by the part `momentum` towards it.
  bool is_statistic = false;
  double momentum = 0.1; ///< Of a statistic.

  /// Elements of the whole parameter.
  uint64_t elements() const { return rows * columns; }
};

/// What a forward or backward computes: for which samples and on which tensor-parallel rank.
struct pass {
  precision as = precision::float32; ///< Type of all numbers.
  uint64_t samples = 0;              ///< Rows of x and y.
  shard tensor{};                    ///< Of the layer, which this rank has.
  uint64_t global_batch = 1;         ///< Samples of the step, of which these are some.
  bool trains = true;                ///< false: no gradients are needed, and statistics do not change.
  uint64_t weights = 0;              ///< Differs between two w, and changes whenever w changes; 0: not known.
  /// What the layer's forward keeps for its backward, such as autograd's graph. It is stored with the input x. Null:
  /// nothing can be kept. A layer that does not find it, or finds it of other weights, computes it again.
  std::shared_ptr<void>* keepsake = nullptr;
};

} // namespace ringmaster::training

namespace RINGMASTER_API {

/// A layer of your own, y = f(x, w), which every strategy can train. Const functions are called by several threads at
/// once. x is [samples x inputs()], y is [samples x outputs()], row-major, of elements as training::pass::as says; w
/// and the gradient by it are the parameters in the order of `parameters()`, one after the other.
class own_layer {
public:
  virtual ~own_layer() = default;

  virtual std::string name() const = 0; ///< "linear 784x128".
  virtual uint64_t inputs() const = 0;  ///< Elements of x for each sample.
  virtual uint64_t outputs() const = 0; ///< Elements of y for each sample.
  /// Of the whole layer; replicated ones last. The span stays valid.
  virtual std::span<const training::parameter> parameters() const = 0;
  /// Whether this number of ranks can share it by its parameters' cuts. By default only one rank has it.
  virtual bool can_be_shared_by(uint32_t ranks) const { return ranks == 1; }
  /// Computes y. May throw a std::exception, which ends the step with an error.
  virtual void forward(const training::pass& at, const std::byte* x, const std::byte* w, std::byte* y) const = 0;
  /// Computes the gradients by w and by x from that by y. Null results are not wanted.
  virtual void backward(const training::pass& at, const std::byte* x, const std::byte* w, const std::byte* by_y,
                        std::byte* by_w, std::byte* by_x) const = 0;
};

/// A layer of a model. Copies share it; it keeps no state.
class layer_handle {
public:
  /// A layer of your own.
  layer_handle(std::shared_ptr<const own_layer> own);
  std::string name() const; ///< "linear 784x128".
  uint64_t inputs() const;  ///< Elements of its input for each sample.
  uint64_t outputs() const; ///< Elements of its output for each sample.

  explicit layer_handle(std::shared_ptr<const training::layer> content);               ///< Internal.
  const std::shared_ptr<const training::layer>& internals() const { return content_; } ///< Internal.

private:
  std::shared_ptr<const training::layer> content_;
};

/// Layers in their order.
using model_layers = std::vector<layer_handle>;

/// The function that a built-in layer applies to its input.
enum class activation_function : uint8_t {
  none, ///< The identity.
  relu, ///< max(x, 0).
  tanh  ///< Hyperbolic tangent.
};

/// y = f(x) W + b, W of [inputs x outputs].
layer_handle linear_layer(uint64_t inputs, uint64_t outputs, activation_function f = activation_function::none);
/// y = x + f(x V + a) W + b, which ranks share by columns of V and rows of W (Shoeybi et al., Megatron-LM, 2019).
layer_handle feed_forward_layer(uint64_t width, uint64_t hidden, activation_function f = activation_function::relu);
/// Linear layers from each size to the next, with f between them. At least two sizes, none 0.
model_layers perceptron(const std::vector<uint64_t>& sizes, activation_function f = activation_function::relu);

} // namespace RINGMASTER_API
