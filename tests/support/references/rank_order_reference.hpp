#pragma once

#include "messages/errc.hpp"
#include "runtime/reduction/reduce_op_registry.hpp"
#include "tests/support/references/element.hpp"

#include <doctest/doctest.h>

// What deterministic mode promises, as a plain loop over the ranks.

namespace ringmaster::test {

/// A function that is neither commutative nor associative.
inline constexpr const char* subtract_in_rank_order = "subtract_in_rank_order";

/// Its bytes: a - 3b, of any datatype.
inline uint8_t subtracted(uint8_t a, uint8_t b) {
  return static_cast<uint8_t>(a - 3 * b);
}

inline void register_subtract_in_rank_order() {
  user_reduce_op op;
  op.apply = [](proto::DataType type, const std::byte* a, const std::byte* b, std::byte* out, uint64_t count) {
    for (uint64_t i = 0; i < count * size_of(type); ++i)
      out[i] = std::byte{subtracted(static_cast<uint8_t>(a[i]), static_cast<uint8_t>(b[i]))};
  };
  for (int type = proto::DataType_MIN; type <= proto::DataType_MAX; ++type)
    op.datatypes.push_back(static_cast<proto::DataType>(type));
  static const auto problem = register_reduce_op(subtract_in_rank_order, op);
  REQUIRE(render(problem) == render(caf::error{}));
}

/// Exact in every float.
inline double premul_factor(uint32_t rank) {
  return rank % 3 == 0 ? 0.5 : rank % 3 == 1 ? -2 : 1.5;
}

/// One element of all ranks.
template <class T>
T added_in_rank_order(gpu_sim::ReduceOp op, std::vector<T> column) {
  if (op == gpu_sim::PREMUL_SUM)
    for (uint32_t rank = 0; rank < column.size(); ++rank)
      column[rank] = reference(gpu_sim::PROD, column[rank],
                               element<T>::encode(static_cast<typename element<T>::wide>(premul_factor(rank))));
  if (op == gpu_sim::USER) {
    auto result = column[0];
    auto* bytes = reinterpret_cast<uint8_t*>(&result);
    for (size_t rank = 1; rank < column.size(); ++rank)
      for (size_t i = 0; i < sizeof(T); ++i)
        bytes[i] = subtracted(bytes[i], reinterpret_cast<const uint8_t*>(&column[rank])[i]);
    return result;
  }
  if (column.size() == 1 && op != gpu_sim::AVG)
    return column[0]; // as it is, and so is a NaN
  return chained(op, column, op == gpu_sim::AVG ? static_cast<uint32_t>(column.size()) : 0);
}

/// All elements that every rank has.
template <class T>
std::vector<T> added_in_rank_order(gpu_sim::ReduceOp op, const std::vector<std::vector<T>>& inputs) {
  std::vector<T> result;
  for (size_t i = 0; i < inputs[0].size(); ++i) {
    std::vector<T> column;
    for (const auto& x : inputs)
      column.push_back(x[i]);
    result.push_back(added_in_rank_order(op, std::move(column)));
  }
  return result;
}

} // namespace ringmaster::test
