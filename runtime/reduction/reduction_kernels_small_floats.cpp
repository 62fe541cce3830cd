#include "runtime/reduction/float16_conversions.hpp"
#include "runtime/reduction/reduction_loops.hpp"
#include "runtime/reduction/small_floats.hpp"

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
datatype_kernels datatype_of(instruction_set set) {
  auto result = float_datatype(proto::FLOAT32, set);
  result.element_bytes = sizeof(typename Format::bits_type);
  result.decode = compiled<decoding_loop<Format>>::at(set);
  result.encode = compiled<encoding_loop<Format>>::at(set);
  return result;
}

datatype_kernels float16_datatype(instruction_set set) {
  auto result = datatype_of<float16>(set);
  if (const auto decode = float16_decoding(set))
    result.decode = decode;
  if (const auto encode = float16_encoding(set))
    result.encode = encode;
  return result;
}

} // namespace

datatype_kernels small_float_datatype(proto::DataType type, instruction_set set) {
  switch (type) {
    case proto::FLOAT16: return float16_datatype(set);
    case proto::BFLOAT16: return datatype_of<bfloat16>(set);
    case proto::FLOAT8_E4M3: return datatype_of<float8_e4m3>(set);
    case proto::FLOAT8_E5M2: return datatype_of<float8_e5m2>(set);
    default: return {};
  }
}

} // namespace ringmaster
