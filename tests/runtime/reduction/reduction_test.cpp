#include "runtime/reduction/reduction.hpp"

#include "messages/errc.hpp"
#include "runtime/reduction/reduction_tiles.hpp"
#include "tests/support/references/element.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

using namespace ringmaster;
using test::built_in_ops;
using test::element;
using test::placed_values;
using test::random_values;

namespace {

template <class T>
reduction_kernels kernels(gpu_sim::ReduceOp op, instruction_set set) {
  return {operation_kernels_for(element<T>::type, op, set), datatype_kernels_for(element<T>::type, set)};
}

template <class T>
std::vector<T> reduced(gpu_sim::ReduceOp op, const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> result;
  for (size_t i = 0; i < a.size(); ++i)
    result.push_back(test::reference(op, a[i], b[i]));
  return result;
}

template <class T>
T reduced(gpu_sim::ReduceOp op, T a, T b) {
  T out{};
  reduce(element<T>::type, op, reinterpret_cast<std::byte*>(&a), reinterpret_cast<std::byte*>(&b),
         reinterpret_cast<std::byte*>(&out), 1);
  return out;
}

template <class T>
T finished(gpu_sim::ReduceOp op, uint32_t world_size, T value) {
  finish_reduction(element<T>::type, op, world_size, reinterpret_cast<std::byte*>(&value), 1);
  return value;
}

constexpr proto::DataType all_types[] = {proto::FLOAT64, proto::FLOAT32,  proto::INT32,       proto::INT64,
                                         proto::INT8,    proto::UINT8,    proto::UINT32,      proto::UINT64,
                                         proto::FLOAT16, proto::BFLOAT16, proto::FLOAT8_E4M3, proto::FLOAT8_E5M2};

} // namespace

TEST_CASE_TEMPLATE("reduction: every instruction set gives the reference's bits", T, RINGMASTER_ELEMENTS) {
  std::mt19937_64 random{sizeof(T)};
  for (auto set : supported_instruction_sets())
    for (auto op : built_in_ops)
      for (size_t count : {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 511, 513, 1000, 4099}) {
        CAPTURE(std::string{name_of(set)});
        CAPTURE(std::string{name_of(op)});
        CAPTURE(count);
        const auto a = random_values<T>(random, count);
        const auto b = random_values<T>(random, count);
        placed_values<T> left{a, count % 7};
        placed_values<T> right{b, 1};
        placed_values<T> out{std::vector<T>(count), 3};
        reduce_pair(kernels<T>(op, set), left.data(), right.data(), out.data(), count);
        CHECK(out.first_difference(reduced(op, a, b)) == count);
        CHECK(left.first_difference(a) == count);
      }
}

TEST_CASE_TEMPLATE("reduction: the result may take the place of either side", T, RINGMASTER_ELEMENTS) {
  std::mt19937_64 random{7};
  const size_t count = 1133;
  const auto a = random_values<T>(random, count);
  const auto b = random_values<T>(random, count);
  for (auto set : supported_instruction_sets())
    for (auto op : built_in_ops) {
      const auto loops = kernels<T>(op, set);
      placed_values<T> left{a, 0};
      placed_values<T> right{b, 5};
      reduce_pair(loops, left.data(), right.data(), left.data(), count);
      CHECK(left.first_difference(reduced(op, a, b)) == count);
      placed_values<T> original{a, 0};
      reduce_pair(loops, original.data(), right.data(), right.data(), count);
      CHECK(right.first_difference(reduced(op, a, b)) == count);
      reduce_pair(loops, original.data(), original.data(), original.data(), count);
      CHECK(original.first_difference(reduced(op, a, a)) == count);
    }
}

TEST_CASE_TEMPLATE("reduction: every instruction set divides alike", T, RINGMASTER_ELEMENTS) {
  std::mt19937_64 random{11};
  using e = element<T>;
  const auto values = random_values<T>(random, 1517);
  for (auto set : supported_instruction_sets())
    for (uint32_t divisor : {1u, 2u, 3u, 7u, 10u, 127u, 128u, 1000u, 0x80000000u, 0xffffffffu}) {
      CAPTURE(std::string{name_of(set)});
      CAPTURE(divisor);
      std::vector<T> right;
      for (auto x : values)
        right.push_back(e::encode(test::quotient(e::decode(x), divisor)));
      placed_values<T> quotients{values, 1};
      divide_values(datatype_kernels_for(e::type, set), quotients.data(), values.size(), divisor);
      CHECK(quotients.first_difference(right) == values.size());
    }
}

TEST_CASE("reduction: integers wrap around") {
  CHECK(reduced<int32_t>(gpu_sim::SUM, INT32_MAX, 1) == INT32_MIN);
  CHECK(reduced<int64_t>(gpu_sim::SUM, INT64_MIN, -1) == INT64_MAX);
  CHECK(reduced<int32_t>(gpu_sim::PROD, INT32_MIN, -1) == INT32_MIN);
  CHECK(reduced<int64_t>(gpu_sim::PROD, INT64_MAX, 2) == -2);
  CHECK(reduced<int8_t>(gpu_sim::SUM, 127, 1) == -128);
  CHECK(reduced<uint8_t>(gpu_sim::PROD, 16, 17) == 16);
  CHECK(reduced<uint32_t>(gpu_sim::SUM, UINT32_MAX, 2) == 1);
  CHECK(reduced<uint64_t>(gpu_sim::PROD, UINT64_MAX, UINT64_MAX) == 1);
}

TEST_CASE("reduction: unsigned integers are compared without a sign") {
  CHECK(reduced<uint8_t>(gpu_sim::MAX, 200, 100) == 200);
  CHECK(reduced<uint32_t>(gpu_sim::MIN, 0x80000000u, 1) == 1);
  CHECK(reduced<uint64_t>(gpu_sim::MAX, UINT64_MAX, 1) == UINT64_MAX);
  CHECK(finished<uint64_t>(gpu_sim::AVG, 2, UINT64_MAX) == UINT64_MAX / 2);
}

TEST_CASE("reduction: minimum and maximum give NaN where either side is NaN") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (auto op : {gpu_sim::MIN, gpu_sim::MAX}) {
    CHECK(std::isnan(reduced(op, nan, 1.0)));
    CHECK(std::isnan(reduced(op, 1.0, nan)));
    CHECK(std::isnan(reduced(op, float(nan), -INFINITY)));
    CHECK(std::isnan(reduced(op, INFINITY, float(nan))));
    CHECK(reduced(op, test::half{0xfe01}, test::half{0x3c00}).bits == 0x7e00); // the one NaN
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
  CHECK(finished<int8_t>(gpu_sim::AVG, 4, -7) == -1);
  CHECK(finished<int64_t>(gpu_sim::AVG, 2, INT64_MIN) == INT64_MIN / 2);
  for (auto op : {gpu_sim::SUM, gpu_sim::PROD, gpu_sim::MIN, gpu_sim::MAX})
    CHECK(finished(op, 4, 10.0) == 10.0);
}

TEST_CASE("reduction: small floats are rounded after each step") {
  const test::half big{0x6800}; // 2048, from where on float16 has every other integer only
  const test::half one{0x3c00};
  CHECK(reduced(gpu_sim::SUM, reduced(gpu_sim::SUM, big, one), one).bits == big.bits);
  CHECK(reduced(gpu_sim::SUM, test::half{0x7bff}, test::half{0x7bff}).bits == 0x7c00); // infinity
  CHECK(reduced(gpu_sim::SUM, test::e4m3{0x7e}, test::e4m3{0x7e}).bits == 0x7f);       // NaN
}

TEST_CASE("reduction: nothing is touched where there are no elements") {
  for (auto type : all_types)
    for (auto op : built_in_ops) {
      reduce(type, op, nullptr, nullptr, nullptr, 0);
      finish_reduction(type, op, 3, nullptr, 0);
    }
}

TEST_CASE("reduction: names are parsed to what they name") {
  for (auto type : all_types) {
    auto parsed = parse_datatype(name_of(type));
    REQUIRE(parsed.engaged());
    CHECK(*parsed == type);
  }
  for (auto op : built_in_ops) {
    auto parsed = parse_reduce_op(name_of(op));
    REQUIRE(parsed.engaged());
    CHECK(*parsed == op);
  }
  CHECK(name_of(proto::FLOAT64) == "float64");
  CHECK(name_of(proto::FLOAT8_E5M2) == "float8_e5m2");
  CHECK(name_of(gpu_sim::AVG) == "avg");
  CHECK(name_of(gpu_sim::USER) == "user");
}

TEST_CASE("reduction: says which names there are") {
  auto type = parse_datatype("half");
  CHECK(code_of(type.error()) == errc::invalid_argument);
  CHECK(render(type.error())
        == "\"half\" is no datatype; there are float64, float32, int32, int64, int8, uint8, uint32, uint64, float16, "
           "bfloat16, float8_e4m3, float8_e5m2");
  auto op = parse_reduce_op("user");
  CHECK(code_of(op.error()) == errc::invalid_argument);
  CHECK(render(op.error()) == "\"user\" is no reduction; there are sum, prod, min, max, avg, premul_sum");
}

TEST_CASE_TEMPLATE("reduction: knows the size of an element", T, RINGMASTER_ELEMENTS) {
  CHECK(size_of(element<T>::type) == sizeof(T));
  for (auto set : supported_instruction_sets())
    CHECK(datatype_kernels_for(element<T>::type, set).element_bytes == sizeof(T));
}

TEST_CASE("reduction: knows what does not exist") {
  const auto no_type = static_cast<proto::DataType>(99);
  const auto no_op = static_cast<gpu_sim::ReduceOp>(99);
  CHECK(size_of(no_type) == 0);
  CHECK(name_of(no_type) == "unknown");
  CHECK(name_of(no_op) == "unknown");
  CHECK(!operation_kernels_for(no_type, gpu_sim::SUM, instruction_set::baseline).pair);
  CHECK(!operation_kernels_for(proto::INT32, no_op, instruction_set::baseline).pair);
  CHECK(!operation_kernels_for(proto::FLOAT16, gpu_sim::USER, instruction_set::baseline).pair);
  CHECK(!datatype_kernels_for(no_type, instruction_set::baseline).divide);
}
