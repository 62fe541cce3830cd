#pragma once

#include <ringmaster/process_group.hpp>

namespace RINGMASTER_API {

/// float32 numbers in the host's memory with a shape, row-major.
struct tensor {
  std::vector<uint64_t> shape{}; ///< Sides; the last axis is contiguous.
  std::vector<float> values{};   ///< As many as the product of the sides.

  /// "[4 x 8]".
  std::string shape_text() const;
  /// Equal shapes and values.
  friend bool operator==(const tensor&, const tensor&) = default;
};

/// Part `part` of `parts` equal ones of the last axis, or of the first. Errors: invalid_argument where it does not
/// divide.
expected<tensor> part_of_last_axis(const tensor& x, uint32_t part, uint32_t parts);
expected<tensor> part_of_first_axis(const tensor& x, uint32_t part, uint32_t parts); ///< \copydoc part_of_last_axis

/// y = x w + b on one rank: x [batch x inputs], w [inputs x outputs], b [outputs] or empty. Errors: invalid_argument,
/// with the shapes that do not match.
expected<tensor> linear_forward(const tensor& x, const tensor& w, const tensor& b = {});

/// One rank's end of a group of ranks that exchange tensors through their devices. The k-th call of a rank matches the
/// k-th of all others. One thread at a time. Errors of every call: invalid_argument where the ranks' calls do not
/// match; device_lost; timed_out, with the rank that is missing.
class tensor_group {
public:
  /// The communicator must outlive it. `limit`: for all ranks to have made a call and for it to have finished.
  explicit tensor_group(rank_communicator& self, std::chrono::nanoseconds limit = std::chrono::seconds{30});
  ~tensor_group();
  tensor_group(const tensor_group&) = delete;
  tensor_group& operator=(const tensor_group&) = delete;

  uint32_t rank() const;       ///< Of this end.
  uint32_t size() const;       ///< Ranks.
  uint64_t bytes_sent() const; ///< That this rank has sent to others so far.

  /// The sum of all ranks' tensors, the same bits on all ranks. A rank sends 2 (N-1)/N of x.
  expected<tensor> all_reduce(const tensor& x);
  /// All ranks' tensors in rank order, as a vector. A rank sends N-1 times x.
  expected<tensor> all_gather(const tensor& x);
  /// Block `rank()` of the sum, of N equal blocks. A rank sends (N-1)/N of x.
  expected<tensor> reduce_scatter(const tensor& x);
  /// Block r goes to rank r, of N equal blocks. A rank sends (N-1)/N of x.
  expected<tensor> all_to_all(const tensor& x);

  struct state;                                ///< Internal.
  state& internals() const { return *state_; } ///< Internal.

private:
  std::unique_ptr<state> state_;
};

/// A rank's part of two layers, y = relu(x V + a) W + b, V cut by columns and W by rows, so that one all-reduce each
/// way suffices (Shoeybi et al., Megatron-LM, 2019). N ranks share them.
struct megatron_pair {
  tensor first_weight{};  ///< Of V: [inputs x hidden/N].
  tensor first_bias{};    ///< Of a: [hidden/N]; empty: none.
  tensor second_weight{}; ///< Of W: [hidden/N x outputs].
  tensor second_bias{};   ///< b, [outputs], the same on all ranks; empty: none.
};

/// Result of `pair_forward`.
struct pair_output {
  tensor y{};      ///< [batch x outputs], the same on all ranks.
  tensor hidden{}; ///< [batch x hidden/N], for `pair_backward`.
};

/// Gradients of a loss, in the shapes of what they are by; those by x and second_bias are the same on all ranks.
struct pair_gradients {
  tensor x{};             ///< By the input.
  tensor first_weight{};  ///< By the rank's part of V.
  tensor first_bias{};    ///< By the rank's part of a.
  tensor second_weight{}; ///< By the rank's part of W.
  tensor second_bias{};   ///< By b.
};

/// Computes y from x, [batch x inputs], the same on all ranks. A rank sends 2 (N-1)/N of y.
expected<pair_output> pair_forward(tensor_group& over, const megatron_pair& layers, const tensor& x);
/// Computes the gradients from that by y, [batch x outputs], the same on all ranks. A rank sends 2 (N-1)/N of x.
expected<pair_gradients> pair_backward(tensor_group& over, const megatron_pair& layers, const tensor& x,
                                       const tensor& hidden, const tensor& by_y);

} // namespace RINGMASTER_API
