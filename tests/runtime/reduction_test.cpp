#include "runtime/reduction.hpp"

#include "messages/errc.hpp"
#include "runtime/reduction_kernels.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

using namespace ringmaster;

namespace {

constexpr gpu_sim::ReduceOp all_ops[] = {gpu_sim::SUM, gpu_sim::PROD, gpu_sim::MIN, gpu_sim::MAX, gpu_sim::AVG};

template <class T>
constexpr proto::DataType type_of = std::is_same_v<T, double>    ? proto::FLOAT64
                                    : std::is_same_v<T, float>   ? proto::FLOAT32
                                    : std::is_same_v<T, int32_t> ? proto::INT32
                                                                 : proto::INT64;

template <class T>
using bits_of = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

/// What one element should be, the plain way. Integers in 128 bits, cut off.
template <class T>
T reference(gpu_sim::ReduceOp op, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (op == gpu_sim::MIN || op == gpu_sim::MAX)
      return (a < b) == (op == gpu_sim::MIN) ? a : b;
    const auto wide = op == gpu_sim::PROD ? static_cast<__int128>(a) * b : static_cast<__int128>(a) + b;
    return static_cast<T>(static_cast<bits_of<T>>(wide));
  } else {
    if (std::isnan(a) || std::isnan(b))
      return std::numeric_limits<T>::quiet_NaN();
    if (op == gpu_sim::MIN || op == gpu_sim::MAX) {
      const bool a_smaller = a < b || (a == b && std::signbit(a));
      return a_smaller == (op == gpu_sim::MIN) ? a : b;
    }
    const T result = op == gpu_sim::PROD ? a * b : a + b;
    return std::isnan(result) ? std::numeric_limits<T>::quiet_NaN() : result;
  }
}

/// Ordinary values, and at random places those at which arithmetic goes wrong.
template <class T>
std::vector<T> random_values(std::mt19937_64& random, size_t count) {
  using limits = std::numeric_limits<T>;
  std::vector<T> special{T(0), T(1), T(-1), limits::max(), limits::lowest(), limits::min()};
  if constexpr (std::is_floating_point_v<T>)
    special.insert(special.end(), {-T(0), limits::infinity(), -limits::infinity(), limits::quiet_NaN(),
                                   -limits::quiet_NaN(), limits::denorm_min(),
                                   std::bit_cast<T>(static_cast<bits_of<T>>(
                                     std::bit_cast<bits_of<T>>(limits::quiet_NaN()) | 0x1234))});
  std::vector<T> values(count);
  for (auto& value : values) {
    if (random() % 4 == 0)
      value = special[random() % special.size()];
    else if constexpr (std::is_floating_point_v<T>)
      value = static_cast<T>(std::uniform_real_distribution<double>{-1e6, 1e6}(random));
    else
      value = static_cast<T>(random());
  }
  return values;
}

/// Values at an address that is `misaligned` bytes off.
template <class T>
struct placed_values {
  std::vector<std::byte> bytes;
  size_t misaligned;

  placed_values(const std::vector<T>& values, size_t offset)
    : bytes(values.size() * sizeof(T) + offset + 1), misaligned(offset) {
    if (!values.empty())
      std::memcpy(data(), values.data(), values.size() * sizeof(T));
  }

  std::byte* data() { return bytes.data() + misaligned; }

  T operator[](size_t i) {
    T value;
    std::memcpy(&value, data() + i * sizeof(T), sizeof value);
    return value;
  }
};

template <class T>
bool same_bits(T a, T b) {
  return std::bit_cast<bits_of<T>>(a) == std::bit_cast<bits_of<T>>(b);
}

template <class T>
T reduced(gpu_sim::ReduceOp op, T a, T b) {
  T out{};
  reduce(type_of<T>, op, reinterpret_cast<std::byte*>(&a), reinterpret_cast<std::byte*>(&b),
         reinterpret_cast<std::byte*>(&out), 1);
  return out;
}

template <class T>
T finished(gpu_sim::ReduceOp op, uint32_t world_size, T value) {
  finish_reduction(type_of<T>, op, world_size, reinterpret_cast<std::byte*>(&value), 1);
  return value;
}

} // namespace

TEST_CASE_TEMPLATE("reduction: every instruction set gives the reference's bits", T, double, float, int32_t, int64_t) {
  std::mt19937_64 random{sizeof(T)};
  for (auto set : supported_instruction_sets())
    for (auto op : all_ops)
      for (size_t count : {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 1000, 4099}) {
        CAPTURE(std::string{name_of(set)});
        CAPTURE(std::string{name_of(op)});
        CAPTURE(count);
        const auto a = random_values<T>(random, count);
        const auto b = random_values<T>(random, count);
        placed_values<T> left{a, count % 7};
        placed_values<T> right{b, 1};
        placed_values<T> out{std::vector<T>(count), 3};
        kernel_for(type_of<T>, op, set)(left.data(), right.data(), out.data(), count);
        for (size_t i = 0; i < count; ++i)
          REQUIRE_MESSAGE(same_bits(out[i], reference(op, a[i], b[i])), i, ": ", a[i], ", ", b[i], " gave ", out[i]);
        REQUIRE(out.bytes.back() == std::byte{0});
      }
}

TEST_CASE_TEMPLATE("reduction: the result may take the place of either side", T, double, float, int32_t, int64_t) {
  std::mt19937_64 random{7};
  const size_t count = 133;
  const auto a = random_values<T>(random, count);
  const auto b = random_values<T>(random, count);
  for (auto set : supported_instruction_sets())
    for (auto op : all_ops) {
      const auto kernel = kernel_for(type_of<T>, op, set);
      placed_values<T> left{a, 0};
      placed_values<T> right{b, 5};
      kernel(left.data(), right.data(), left.data(), count);
      for (size_t i = 0; i < count; ++i)
        REQUIRE(same_bits(left[i], reference(op, a[i], b[i])));
      placed_values<T> original{a, 0};
      kernel(original.data(), right.data(), right.data(), count);
      for (size_t i = 0; i < count; ++i)
        REQUIRE(same_bits(right[i], reference(op, a[i], b[i])));
      kernel(original.data(), original.data(), original.data(), count);
      for (size_t i = 0; i < count; ++i)
        REQUIRE(same_bits(original[i], reference(op, a[i], a[i])));
    }
}

TEST_CASE_TEMPLATE("reduction: every instruction set divides alike", T, double, float, int32_t, int64_t) {
  std::mt19937_64 random{11};
  const auto values = random_values<T>(random, 517);
  for (auto set : supported_instruction_sets())
    for (uint32_t divisor : {1u, 2u, 3u, 7u, 10u, 1000u, 0x80000000u, 0xffffffffu}) {
      CAPTURE(std::string{name_of(set)});
      CAPTURE(divisor);
      placed_values<T> quotients{values, 1};
      division_for(type_of<T>, set)(quotients.data(), values.size(), divisor);
      for (size_t i = 0; i < values.size(); ++i) {
        if constexpr (std::is_integral_v<T>)
          REQUIRE(quotients[i] == static_cast<T>(static_cast<__int128>(values[i]) / divisor));
        else if (std::isnan(values[i]))
          REQUIRE(std::isnan(quotients[i]));
        else
          REQUIRE(same_bits(quotients[i], values[i] / static_cast<T>(divisor)));
      }
    }
}

TEST_CASE("reduction: integers wrap around") {
  CHECK(reduced<int32_t>(gpu_sim::SUM, INT32_MAX, 1) == INT32_MIN);
  CHECK(reduced<int64_t>(gpu_sim::SUM, INT64_MIN, -1) == INT64_MAX);
  CHECK(reduced<int32_t>(gpu_sim::PROD, INT32_MIN, -1) == INT32_MIN);
  CHECK(reduced<int64_t>(gpu_sim::PROD, INT64_MAX, 2) == -2);
}

TEST_CASE("reduction: minimum and maximum give NaN where either side is NaN") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (auto op : {gpu_sim::MIN, gpu_sim::MAX}) {
    CHECK(std::isnan(reduced(op, nan, 1.0)));
    CHECK(std::isnan(reduced(op, 1.0, nan)));
    CHECK(std::isnan(reduced(op, float(nan), -INFINITY)));
    CHECK(std::isnan(reduced(op, INFINITY, float(nan))));
  }
}

TEST_CASE("reduction: minimum and maximum of two zeros do not depend on the order") {
  CHECK(std::signbit(reduced(gpu_sim::MIN, -0.0, 0.0)));
  CHECK(std::signbit(reduced(gpu_sim::MIN, 0.0, -0.0)));
  CHECK(!std::signbit(reduced(gpu_sim::MAX, -0.0f, 0.0f)));
  CHECK(!std::signbit(reduced(gpu_sim::MAX, 0.0f, -0.0f)));
}

TEST_CASE("reduction: an average adds, and divides at the end") {
  CHECK(reduced(gpu_sim::AVG, 1.5, 2.5) == 4.0);
  CHECK(finished(gpu_sim::AVG, 4, 10.0) == 2.5);
  CHECK(finished(gpu_sim::AVG, 4, 10.0f) == 2.5f);
  CHECK(finished<int32_t>(gpu_sim::AVG, 4, 7) == 1);
  CHECK(finished<int32_t>(gpu_sim::AVG, 4, -7) == -1);
  CHECK(finished<int64_t>(gpu_sim::AVG, 2, INT64_MIN) == INT64_MIN / 2);
  for (auto op : {gpu_sim::SUM, gpu_sim::PROD, gpu_sim::MIN, gpu_sim::MAX})
    CHECK(finished(op, 4, 10.0) == 10.0);
}

TEST_CASE("reduction: nothing is touched where there are no elements") {
  for (auto op : all_ops) {
    reduce(proto::FLOAT64, op, nullptr, nullptr, nullptr, 0);
    finish_reduction(proto::INT64, op, 3, nullptr, 0);
  }
}

TEST_CASE("reduction: names are parsed to what they name") {
  for (auto type : {proto::FLOAT64, proto::FLOAT32, proto::INT32, proto::INT64}) {
    auto parsed = parse_datatype(name_of(type));
    REQUIRE(parsed.engaged());
    CHECK(*parsed == type);
  }
  for (auto op : all_ops) {
    auto parsed = parse_reduce_op(name_of(op));
    REQUIRE(parsed.engaged());
    CHECK(*parsed == op);
  }
  CHECK(name_of(proto::FLOAT64) == "float64");
  CHECK(name_of(gpu_sim::AVG) == "avg");
}

TEST_CASE("reduction: says which names there are") {
  auto type = parse_datatype("float16");
  CHECK(code_of(type.error()) == errc::invalid_argument);
  CHECK(render(type.error()) == "\"float16\" is no datatype; there are float64, float32, int32, int64");
  auto op = parse_reduce_op("");
  CHECK(code_of(op.error()) == errc::invalid_argument);
  CHECK(render(op.error()) == "\"\" is no reduction; there are sum, prod, min, max, avg");
}

TEST_CASE("reduction: knows the size of an element, and what does not exist") {
  CHECK(size_of(proto::FLOAT64) == 8);
  CHECK(size_of(proto::FLOAT32) == 4);
  CHECK(size_of(proto::INT32) == 4);
  CHECK(size_of(proto::INT64) == 8);
  const auto no_type = static_cast<proto::DataType>(99);
  const auto no_op = static_cast<gpu_sim::ReduceOp>(99);
  CHECK(size_of(no_type) == 0);
  CHECK(name_of(no_type) == "unknown");
  CHECK(name_of(no_op) == "unknown");
  CHECK(!kernel_for(no_type, gpu_sim::SUM, instruction_set::baseline));
  CHECK(!kernel_for(proto::INT32, no_op, instruction_set::baseline));
}
