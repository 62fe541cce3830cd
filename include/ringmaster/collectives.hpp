#pragma once

#include <ringmaster/errors.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace RINGMASTER_API {

/// What a collective makes of the ranks' inputs: the kinds of MPI and NCCL. With one count for each rank it is the
/// v-variant. The numbers are those of the protocol.
enum class collective_kind : int {
  all_reduce = 0,     ///< Every output is the reduction of all inputs.
  reduce = 1,         ///< The same, at the root only.
  broadcast = 2,      ///< Every output is the root's input.
  all_gather = 3,     ///< Every output is all inputs in rank order.
  reduce_scatter = 4, ///< The output of rank r is block r of the reduction of all inputs.
  all_to_all = 5,     ///< Block s of the output of rank r is block r of the input of rank s.
  gather = 6,         ///< As all_gather, at the root only.
  scatter = 7,        ///< The output of rank r is block r of the root's input.
  barrier = 8,        ///< No data: no rank finishes before all ranks have called it.
  send_recv = 9       ///< The output of the peer is the root's input.
};

/// Type of an element. The numbers are those of the protocol; a program may register others (datatype.hpp).
enum class datatype : int {
  float64 = 0,      ///< IEEE 754 binary64, C++ double.
  float32 = 1,      ///< IEEE 754 binary32, C++ float.
  int32 = 2,        ///< int32_t
  int64 = 3,        ///< int64_t
  int8 = 4,         ///< int8_t
  uint8 = 5,        ///< uint8_t
  uint32 = 6,       ///< uint32_t
  uint64 = 7,       ///< uint64_t
  float16 = 8,      ///< IEEE 754 binary16.
  bfloat16 = 9,     ///< The upper half of a float32.
  float8_e4m3 = 10, ///< No infinities, one NaN, largest 448 (Micikevicius et al., FP8 Formats for Deep Learning, 2022).
  float8_e5m2 = 11  ///< As IEEE 754 would define it, largest 57344.
};

/// Operation of a reduction. The numbers are those of the protocol.
enum class reduce_op : int {
  sum = 0,        ///< Sum.
  prod = 1,       ///< Product.
  min = 2,        ///< Minimum; NaN where an input is NaN.
  max = 3,        ///< Maximum; NaN where an input is NaN.
  avg = 4,        ///< Sum divided by the world size; integers truncate toward zero.
  premul_sum = 5, ///< Sum of the inputs, each multiplied by its rank's factor first (ncclRedOpCreatePreMulSum).
  user = 6        ///< Registered by name: see reduce_op.hpp.
};

/// Bytes of one element; 0 for a datatype that does not exist. Thread-safe.
size_t bytes_of(datatype type);

/// "all_reduce", "float64", "sum": the names that command lines and logs use. Thread-safe.
std::string_view name_of(collective_kind kind);
std::string_view name_of(datatype type); ///< \copydoc name_of(collective_kind)
std::string_view name_of(reduce_op op);  ///< \copydoc name_of(collective_kind)

/// How a collective reduces.
struct reduction {
  reduce_op op = reduce_op::sum; ///< The operation.
  std::string user_op{};         ///< reduce_op::user: the name under which it is registered.
  double factor = 1;             ///< reduce_op::premul_sum: of this rank's input; of all inputs if the host calls.

  /// A built-in operation.
  reduction(reduce_op which = reduce_op::sum) : op(which) {}
  /// Multiplies inputs by a factor, then adds.
  static reduction premul_sum(double factor) {
    reduction result{reduce_op::premul_sum};
    result.factor = factor;
    return result;
  }
  /// A registered operation.
  static reduction user(std::string name) {
    reduction result{reduce_op::user};
    result.user_op = std::move(name);
    return result;
  }
};

/// The datatype of a C++ type. A program specializes it for a datatype of its own (datatype.hpp).
template <class T>
constexpr datatype datatype_of() = delete;
template <>
constexpr datatype datatype_of<double>() {
  return datatype::float64;
}
template <>
constexpr datatype datatype_of<float>() {
  return datatype::float32;
}
template <>
constexpr datatype datatype_of<int32_t>() {
  return datatype::int32;
}
template <>
constexpr datatype datatype_of<int64_t>() {
  return datatype::int64;
}
template <>
constexpr datatype datatype_of<int8_t>() {
  return datatype::int8;
}
template <>
constexpr datatype datatype_of<uint8_t>() {
  return datatype::uint8;
}
template <>
constexpr datatype datatype_of<uint32_t>() {
  return datatype::uint32;
}
template <>
constexpr datatype datatype_of<uint64_t>() {
  return datatype::uint64;
}

} // namespace RINGMASTER_API
