#include "runtime/reduction/reduction.hpp"

#include "messages/errc.hpp"
#include "runtime/reduction/announced_access.hpp"
#include "runtime/reduction/reduction_tiles.hpp"
#include "runtime/reduction/small_floats.hpp"

#include <fmt/format.h>

#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace ringmaster {

namespace {

/// A factor in its datatype, or why it cannot be.
struct converted_factor {
  caf::error error;
  std::array<std::byte, 8> bytes{};
};

converted_factor refused(std::string text) {
  return {make_error(errc::invalid_argument, std::move(text))};
}

template <class T>
converted_factor stored(T value) {
  converted_factor result;
  std::memcpy(result.bytes.data(), &value, sizeof value);
  return result;
}

template <class T>
converted_factor to_integer(std::string_view name, double factor) {
  using limits = std::numeric_limits<T>;
  // The least value is 0 or a power of two, and one above the largest is: both are exact.
  const bool in_range = factor >= static_cast<double>(limits::lowest()) && factor < std::ldexp(1.0, limits::digits);
  if (!in_range || factor != std::trunc(factor))
    return refused(fmt::format("the factor is {}, but of {} it must be whole and from {} to {}", factor, name,
                               int64_t{limits::lowest()}, uint64_t{limits::max()}));
  return stored(static_cast<T>(factor));
}

converted_factor beyond(std::string_view name, double factor) {
  return refused(fmt::format("the factor is {}, which is not finite in {}", factor, name));
}

template <class Format>
converted_factor to_small_float(std::string_view name, double factor) {
  const auto bits = Format::encode(rounded_to_odd(factor));
  return std::isfinite(Format::decode(bits)) ? stored(bits) : beyond(name, factor);
}

converted_factor convert(proto::DataType type, double factor) {
  const auto name = name_of(type);
  switch (type) {
    case proto::FLOAT64: return std::isfinite(factor) ? stored(factor) : beyond(name, factor);
    case proto::FLOAT32: {
      const auto rounded = static_cast<float>(factor);
      return std::isfinite(rounded) ? stored(rounded) : beyond(name, factor);
    }
    case proto::INT8: return to_integer<int8_t>(name, factor);
    case proto::UINT8: return to_integer<uint8_t>(name, factor);
    case proto::INT32: return to_integer<int32_t>(name, factor);
    case proto::UINT32: return to_integer<uint32_t>(name, factor);
    case proto::INT64: return to_integer<int64_t>(name, factor);
    case proto::UINT64: return to_integer<uint64_t>(name, factor);
    case proto::FLOAT16: return to_small_float<float16>(name, factor);
    case proto::BFLOAT16: return to_small_float<bfloat16>(name, factor);
    case proto::FLOAT8_E4M3: return to_small_float<float8_e4m3>(name, factor);
    case proto::FLOAT8_E5M2: return to_small_float<float8_e5m2>(name, factor);
    default: return refused(fmt::format("there is no datatype of number {}", static_cast<int>(type)));
  }
}

} // namespace

caf::error check_factor(proto::DataType type, double factor) {
  return convert(type, factor).error;
}

void scale(proto::DataType type, double factor, const std::byte* in, std::byte* out, uint64_t count) {
  const auto converted = convert(type, factor);
  assert(!converted.error);
  const auto kernels = datatype_kernels_for(type, best_instruction_set());
  announce_read(in, count * kernels.element_bytes);
  announce_write(out, count * kernels.element_bytes);
  scale_values(kernels, converted.bytes.data(), in, out, count);
}

} // namespace ringmaster
