#pragma once

#include "runtime/reduction/reduction_kernels.hpp"

#include <caf/error.hpp>

#include <span>
#include <string_view>

namespace ringmaster {

/// A datatype, and all that is so of it. Everything else asks this, and none is forgotten in a switch.
struct known_datatype {
  proto::DataType value;
  std::string_view name;    ///< As people write it.
  size_t element_bytes = 0; ///< At most `element_bytes_max`.
  /// Sums and products are rounded, so that the order of the operands shows in their bits.
  bool is_float = false;
  int64_t least = 0; ///< Of integers.
  uint64_t most = 0; ///< The same.
  /// Stores x as an element: floats round, integers truncate, and store 0 where it is out of their range. Returns
  /// whether x is one of the datatype's: finite in a float, whole and in range for an integer.
  bool (*store)(double x, std::byte* to) = nullptr;
  /// The loops over its elements. Small floats have float32's of an operation, and convert: see reduction_kernels.hpp.
  operation_kernels (*operation)(gpu_sim::ReduceOp op, instruction_set set) = nullptr;
  datatype_kernels (*kernels)(instruction_set set) = nullptr;
};

constexpr size_t element_bytes_max = 8;

/// In the order in which they are listed to people.
std::span<const known_datatype> datatypes();

/// nullptr for a number that means none, as a message may hold.
const known_datatype* find_datatype(proto::DataType type);

/// Adds a datatype, whose number has no other: what loops a C++ type needs is in runtime/reduction/reduction_loops.hpp.
/// Its name must stay where it is. Called when a program starts, before anything else looks at datatypes, and by every
/// process of a cluster alike. Errors: invalid_argument for a name or number that is empty or taken, a size of none or
/// more than `element_bytes_max`, a missing function.
caf::error register_datatype(const known_datatype& added);

/// The table: its entries, in the files of their loops, in the order of their numbers.
#define RINGMASTER_DATATYPES                                                                                           \
  float64_datatype, float32_datatype, int32_datatype, int64_datatype, int8_datatype, uint8_datatype, uint32_datatype,  \
    uint64_datatype, float16_datatype, bfloat16_datatype, float8_e4m3_datatype, float8_e5m2_datatype
extern const known_datatype RINGMASTER_DATATYPES;

} // namespace ringmaster
