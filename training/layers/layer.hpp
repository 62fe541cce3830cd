#pragma once

#include "training/language/value.hpp"

#include <caf/error.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ringmaster::training {

/// What numbers are held and computed in.
enum class precision : uint8_t { float32, float64 };

constexpr uint64_t bytes_of(precision x) {
  return x == precision::float32 ? 4 : 8;
}

/// Floats, as such numbers.
void set_numbers(precision as, std::span<const float> from, std::byte* to);

/// How tensor-parallel ranks share a parameter, a matrix by which row vectors are multiplied from the left (Shoeybi et
/// al., Megatron-LM, 2019).
enum class cut : uint8_t {
  replicated, ///< All of them have it. What a rank finds of its gradient is a summand.
  columns,    ///< Each has a block of its columns.
  rows        ///< Each has a block of its rows.
};

/// Row-major. A vector has one row.
struct parameter {
  std::string name;
  uint64_t rows = 1;
  uint64_t columns = 1;
  cut tensor = cut::replicated;
  double bound = 0; ///< At first uniform in [mean - bound, mean + bound).
  double mean = 0;
  /// A statistic of what went through, such as batch norm's mean, that no gradient changes: in the gradient's place is
  /// what these samples say, as a part of the global batch's, and an update goes `momentum` of the way to that.
  bool is_statistic = false;
  double momentum = 0.1;

  uint64_t elements() const { return rows * columns; }
};

/// What of a parameter one of the ranks that share it has.
parameter part_of(parameter whole, shard tensor);

/// For how many samples and on which tensor-parallel rank.
struct pass {
  precision as = precision::float32;
  uint64_t samples = 0;
  shard tensor{};
  uint64_t global_batch = 1; ///< Of which these samples are some.
  bool trains = true;        ///< false: no gradients are needed, and statistics do not change.
  uint64_t weights = 0;      ///< Another number for every other w, and whenever w has changed; 0: not known.
  /// What the layer's forward leaves for its backward, such as autograd's graph. It goes with the input x. Null: there
  /// is no place for it. A layer that does not find what it left, or finds it of other weights, computes it again.
  std::shared_ptr<void>* keepsake = nullptr;
};

/// A layer, the unit into which strategies cut a model: y = f(x, w). It keeps nothing but `pass::keepsake`; the caller
/// owns all memory. x and y are [samples x inputs()] and [samples x outputs()], row-major; w and the gradient by it are
/// the parameters' parts of the tensor-parallel rank, flat and one behind the other in the order of `parameters()`,
/// those replicated last. With a tensor shard, y is a summand of the output, and a gradient by x one of that; see
/// `by_columns`, too.
class layer {
public:
  virtual ~layer() = default;

  /// "linear 784x128".
  virtual std::string name() const = 0;
  /// What computes it: layers of one name by different makings differ in the last bits.
  virtual std::string_view making() const { return "plain"; }
  virtual uint64_t inputs() const = 0;
  virtual uint64_t outputs() const = 0;
  /// Of the whole layer; those that are replicated come last.
  virtual std::span<const parameter> parameters() const = 0;
  /// Whether this number of ranks can share it. Errors: invalid_argument, with the reason.
  virtual caf::error cannot_share(uint32_t ranks) const;
  /// Of how many samples at once it can learn at the fewest.
  virtual uint64_t samples_min() const { return 1; }

  /// The same one, but that ranks share it by the columns of its output: a tensor shard's y, and the gradient by it, is
  /// a matrix of these alone; a gradient by x is a summand still. No parameter is replicated. Null: it cannot be cut
  /// so.
  virtual std::shared_ptr<const layer> by_columns() const { return nullptr; }
  virtual bool makes_columns() const { return false; }

  /// Both may throw a std::exception with a sentence, which ends the step with an error.
  virtual void forward(const pass& at, const std::byte* x, const std::byte* w, std::byte* y) const = 0;
  /// Either result may be null: it is not wanted.
  virtual void backward(const pass& at, const std::byte* x, const std::byte* w, const std::byte* by_output,
                        std::byte* by_weight, std::byte* by_input) const = 0;

  /// Elements of all of a tensor-parallel rank's parameters, and of those of them that are replicated.
  uint64_t elements(shard tensor) const;
  uint64_t replicated() const;
};

using model_layers = std::vector<std::shared_ptr<const layer>>; ///< They keep nothing, so copies share them.

} // namespace ringmaster::training
