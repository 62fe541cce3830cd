#pragma once

#include "runtime/reduction/reduction_kernels.hpp"

#include <caf/error.hpp>

#include <span>
#include <string_view>

namespace ringmaster {

/// The loops of a datatype that a program registered: the same for every instruction set. Null ones make the reductions
/// invalid that need them.
struct registered_loops {
  pair_kernel sum = nullptr;
  pair_kernel prod = nullptr;
  pair_kernel min = nullptr;
  pair_kernel max = nullptr;
  division_kernel divide = nullptr; ///< Averages need it and `sum`.
  mean_kernel mean = nullptr;       ///< Null: `sum` and `divide`.
  scaling_kernel scale = nullptr;   ///< Sums with factors need it and `sum`.
};

/// A datatype and its properties. All other code asks this table, so no switch misses a datatype.
struct known_datatype {
  proto::DataType value;
  std::string_view name;    ///< As people write it.
  size_t element_bytes = 0; ///< 1, 2, 4 or 8.
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
  registered_loops registered{}; ///< If `operation` and `kernels` are null.
};

constexpr size_t element_bytes_max = 8;
constexpr int datatype_number_max = 255; ///< So that a call's fingerprint has room for it.

/// In the order in which they are listed to people.
std::span<const known_datatype> datatypes();

/// nullptr for a number that means none, as a message may hold.
const known_datatype* find_datatype(proto::DataType type);

/// Adds a datatype with `registered` loops. Its name must outlive the program. Called when a program starts, before
/// other code reads the table, and by every process of a cluster alike. Errors: invalid_argument for a name or number
/// that is empty, taken or too large, another size than 1, 2, 4 or 8, loops without those that they need.
caf::error register_datatype(const known_datatype& added);

/// The table, in the order of the numbers: each one's number, its name, with which its entry begins, and what an
/// element is: a C++ type, or a format of runtime/reduction/small_floats.hpp. The entries are in the files of their
/// loops.
#define RINGMASTER_DATATYPES(ROW)                                                                                      \
  ROW(FLOAT64, float64, double), ROW(FLOAT32, float32, float), ROW(INT32, int32, int32_t), ROW(INT64, int64, int64_t), \
    ROW(INT8, int8, int8_t), ROW(UINT8, uint8, uint8_t), ROW(UINT32, uint32, uint32_t), ROW(UINT64, uint64, uint64_t), \
    ROW(FLOAT16, float16, ringmaster::float16), ROW(BFLOAT16, bfloat16, ringmaster::bfloat16),                         \
    ROW(FLOAT8_E4M3, float8_e4m3, ringmaster::float8_e4m3), ROW(FLOAT8_E5M2, float8_e5m2, ringmaster::float8_e5m2)
#define RINGMASTER_DATATYPE_ENTRY(number, name, element) name##_datatype
extern const known_datatype RINGMASTER_DATATYPES(RINGMASTER_DATATYPE_ENTRY);

} // namespace ringmaster
