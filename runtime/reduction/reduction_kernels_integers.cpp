#include "runtime/reduction/datatypes.hpp"
#include "runtime/reduction/reduction_loops.hpp"

#include <cmath>

namespace ringmaster {

namespace {

// Values of up to 32 bits and every divisor are exact in a double, and so is the quotient's whole part; doubles have
// vectors. Of 8 bits a float does: a quotient that is not whole is further than its rounding from the next whole
// number, and a divisor too large for a float is larger than every value.
template <class T>
using divided_in = std::conditional_t<sizeof(T) == 8, T, std::conditional_t<sizeof(T) == 4, double, float>>;

template <class T>
bool store_truncated(double x, std::byte* to) {
  using limits = std::numeric_limits<T>;
  // The least value is 0 or a power of two, and one above the largest is: both are exact.
  const bool in_range = x >= static_cast<double>(limits::lowest()) && x < std::ldexp(1.0, limits::digits);
  store(to, 0, in_range ? static_cast<T>(x) : T{0});
  return in_range && x == std::trunc(x);
}

template <class T>
constexpr known_datatype integer_datatype(proto::DataType value, std::string_view name) {
  return {.value = value,
          .name = name,
          .element_bytes = sizeof(T),
          .least = std::numeric_limits<T>::lowest(),
          .most = std::numeric_limits<T>::max(),
          .store = store_truncated<T>,
          .operation = [](gpu_sim::ReduceOp op,
                          instruction_set set) { return compiled_operation<T, std::make_unsigned_t<T>>(op, set); },
          .kernels = [](instruction_set set) { return compiled_datatype<T, divided_in<T>>(set); }};
}

} // namespace

constinit const known_datatype int8_datatype = integer_datatype<int8_t>(proto::INT8, "int8");
constinit const known_datatype uint8_datatype = integer_datatype<uint8_t>(proto::UINT8, "uint8");
constinit const known_datatype int32_datatype = integer_datatype<int32_t>(proto::INT32, "int32");
constinit const known_datatype uint32_datatype = integer_datatype<uint32_t>(proto::UINT32, "uint32");
constinit const known_datatype int64_datatype = integer_datatype<int64_t>(proto::INT64, "int64");
constinit const known_datatype uint64_datatype = integer_datatype<uint64_t>(proto::UINT64, "uint64");

} // namespace ringmaster
