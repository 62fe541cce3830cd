#include "runtime/reduction/datatypes.hpp"
#include "runtime/reduction/reduction_loops.hpp"

#include <cmath>

namespace ringmaster {

namespace {

template <class T>
bool store_rounded(double x, std::byte* to) {
  const auto rounded = static_cast<T>(x);
  store(to, 0, rounded);
  return std::isfinite(rounded);
}

template <class T>
constexpr known_datatype float_datatype(proto::DataType value, std::string_view name) {
  return {.value = value,
          .name = name,
          .element_bytes = sizeof(T),
          .is_float = true,
          .store = store_rounded<T>,
          .operation = [](gpu_sim::ReduceOp op, instruction_set set) { return compiled_operation<T>(op, set); },
          .kernels = [](instruction_set set) { return compiled_datatype<T>(set); }};
}

} // namespace

constinit const known_datatype float64_datatype = float_datatype<double>(proto::FLOAT64, "float64");
constinit const known_datatype float32_datatype = float_datatype<float>(proto::FLOAT32, "float32");

} // namespace ringmaster
