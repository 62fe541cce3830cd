#include "runtime/reduction/datatypes.hpp"
#include "runtime/reduction/float16_conversions.hpp"
#include "runtime/reduction/reduction_loops.hpp"
#include "runtime/reduction/small_floats.hpp"

#include <cmath>

namespace ringmaster {

namespace {

template <class Format>
struct decoding_loop {
  [[gnu::always_inline]] static inline void run(const std::byte* in, std::byte* out, uint64_t count) {
#pragma GCC ivdep
    for (uint64_t i = 0; i < count; ++i)
      store(out, i, Format::decode(load<typename Format::bits_type>(in, i)));
  }
};

template <class Format>
struct encoding_loop {
  [[gnu::always_inline]] static inline void run(const std::byte* in, std::byte* out, uint64_t count) {
#pragma GCC ivdep
    for (uint64_t i = 0; i < count; ++i)
      store(out, i, Format::encode(load<float>(in, i)));
  }
};

template <class Format>
bool store_rounded(double x, std::byte* to) {
  const auto bits = Format::encode(rounded_to_odd(x));
  store(to, 0, bits);
  return std::isfinite(Format::decode(bits));
}

constexpr int float32_exponent_bits = 8;

template <class Format>
datatype_kernels kernels_of(instruction_set set) {
  auto result = float32_datatype.kernels(set);
  result.element_bytes = sizeof(typename Format::bits_type);
  result.decode = compiled<decoding_loop<Format>>::at(set);
  result.encode = compiled<encoding_loop<Format>>::at(set);
  if constexpr (Format::exponent_bits < float32_exponent_bits) { // float32 holds every sum of them
    result.check_finite = nullptr;
    result.add_scaled = nullptr;
    result.unscale = nullptr;
  }
  return result;
}

/// With the processor's own conversions.
datatype_kernels float16_kernels(instruction_set set) {
  auto result = kernels_of<float16>(set);
  if (const auto decode = float16_decoding(set))
    result.decode = decode;
  if (const auto encode = float16_encoding(set))
    result.encode = encode;
  return result;
}

operation_kernels operation_of(gpu_sim::ReduceOp op, instruction_set set) {
  return float32_datatype.operation(op, set);
}

template <class Format>
constexpr known_datatype small_datatype(proto::DataType value, std::string_view name,
                                        datatype_kernels (*kernels)(instruction_set) = kernels_of<Format>) {
  return {.value = value,
          .name = name,
          .element_bytes = sizeof(typename Format::bits_type),
          .is_float = true,
          .store = store_rounded<Format>,
          .operation = operation_of,
          .kernels = kernels};
}

} // namespace

constinit const known_datatype float16_datatype = small_datatype<float16>(proto::FLOAT16, "float16", float16_kernels);
constinit const known_datatype bfloat16_datatype = small_datatype<bfloat16>(proto::BFLOAT16, "bfloat16");
constinit const known_datatype float8_e4m3_datatype = small_datatype<float8_e4m3>(proto::FLOAT8_E4M3, "float8_e4m3");
constinit const known_datatype float8_e5m2_datatype = small_datatype<float8_e5m2>(proto::FLOAT8_E5M2, "float8_e5m2");

} // namespace ringmaster
