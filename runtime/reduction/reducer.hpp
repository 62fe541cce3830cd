#pragma once

#include "runtime/reduction/reduce_op_registry.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/reduction/reduction_tiles.hpp"

#include <memory>
#include <span>
#include <string_view>

namespace ringmaster {

/// One reduction of one datatype, found once and used for many blocks. Immutable, so any threads may share it. What
/// `reduce` says of pointers, NaN, zeros and integers holds here.
class reducer {
public:
  /// `user_op` is the name of op USER, and ignored otherwise. Errors: invalid_argument: no such datatype or operation,
  /// or none of that name for the datatype.
  static caf::expected<reducer> of(proto::DataType type, gpu_sim::ReduceOp op, std::string_view user_op = {});

  /// The reduction of a transfer of `bytes`. Its members may be any numbers. Errors: invalid_argument: no such
  /// datatype, no whole elements, or another operation than SUM, PROD, MIN and MAX, which alone need no more than two
  /// operands.
  static caf::expected<reducer> of_transfer(const gpu_sim::TransferReduction& x, uint64_t bytes);

  /// out[i] = a[i] op b[i]; AVG and PREMUL_SUM add. `out` may be `a` or `b`.
  void operator()(const std::byte* a, const std::byte* b, std::byte* out, uint64_t count) const;

  /// Ends a reduction over `world_size` > 0 ranks: AVG divides, the others do nothing.
  void finish(uint32_t world_size, std::byte* values, uint64_t count) const;

  /// By what AVG and PREMUL_SUM over this number of ranks multiply every input before they add, where partial sums are
  /// of the datatype: a power of two, so that no partial sum is too large; 1 where nothing is to be scaled. See
  /// `needs_all_inputs` for the datatypes that have too few exponents for it.
  double scale_before(uint32_t world_size) const;
  /// out[i] = a[i] * a_scale + b[i] * b_scale, where `scale_before` says that operands are to be scaled.
  void add_scaled(const scaled_operands& of, std::byte* out, uint64_t count) const;
  /// Ends a reduction whose inputs were scaled by `scale_before`.
  void finish_scaled(uint32_t world_size, std::byte* values, uint64_t count) const;

  /// out[i] = inputs[0][i] op inputs[1][i] op ..., from left to right, in one pass over memory; with `finish`, what
  /// `finish` would make of it. At least one input; `out` may be one of them. The same bits as the pairs one by one and
  /// `finish`, except for the small floats and built-in operations: they stay float32 from the first input to the
  /// division and are rounded once, so the result is the same or better; and with `finish` for averages and sums with
  /// factors, which are right wherever the result can be represented: integers are added in a wider type, floats once
  /// more scaled down where a sum was too large. `touched_bytes`: what the operation that this
  /// call is a part of reads and writes, if that is more than the call does; large ones write past the caches.
  void many(std::span<const std::byte* const> inputs, std::byte* out, uint64_t count, bool finish, uint32_t world_size,
            uint64_t touched_bytes = 0) const;

  proto::DataType datatype() const { return type_; }
  gpu_sim::ReduceOp op() const { return op_; }

private:
  reducer(proto::DataType type, gpu_sim::ReduceOp op) : type_(type), op_(op) {}

  void many_by_user(std::span<const std::byte* const> inputs, std::byte* out, uint64_t count) const;

  proto::DataType type_;
  gpu_sim::ReduceOp op_;
  reduction_kernels kernels_;                  ///< The operation's are empty for USER.
  std::shared_ptr<const user_reduce_op> user_; ///< Null for the others.
};

} // namespace ringmaster
