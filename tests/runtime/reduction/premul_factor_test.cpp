#include "messages/errc.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/reduction/reduction_tiles.hpp"
#include "tests/support/references/element.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

using namespace ringmaster;
using test::element;
using test::placed_values;

namespace {

std::string fault(proto::DataType type, double factor) {
  const auto error = check_factor(type, factor);
  if (!error)
    return "";
  CHECK(code_of(error) == errc::invalid_argument);
  return render(error);
}

/// The factor in the datatype, and the products in its wide type.
template <class T>
std::vector<T> scaled(const std::vector<T>& values, double factor) {
  using e = element<T>;
  auto by = e::decode(e::encode(static_cast<typename e::wide>(factor)));
  std::vector<T> result;
  for (auto x : values)
    result.push_back(e::encode(test::combined(gpu_sim::PROD, e::decode(x), by)));
  return result;
}

} // namespace

TEST_CASE_TEMPLATE("factor: multiplies every element, in place, too", T, RINGMASTER_ELEMENTS) {
  std::mt19937_64 random{13};
  std::vector<double> factors{0, 1, 3, 100};
  if (std::is_floating_point_v<typename element<T>::wide>)
    factors.insert(factors.end(), {-1, 0.3, 1e-4, -37.25});
  for (double factor : factors)
    for (size_t count : {1, 65, 2049}) {
      CAPTURE(factor);
      CAPTURE(count);
      const auto values = test::random_values<T>(random, count);
      const auto right = scaled(values, factor);
      placed_values<T> in{values, 1};
      placed_values<T> out{std::vector<T>(count), 2};
      REQUIRE(!check_factor(element<T>::type, factor));
      scale(element<T>::type, factor, in.data(), out.data(), count);
      CHECK(out.first_difference(right) == count);
      scale(element<T>::type, factor, in.data(), in.data(), count);
      CHECK(in.first_difference(right) == count);
    }
}

TEST_CASE_TEMPLATE("factor: every instruction set multiplies alike", T, RINGMASTER_ELEMENTS) {
  std::mt19937_64 random{17};
  using e = element<T>;
  const size_t count = 1031;
  const auto values = test::random_values<T>(random, count);
  const T factor = e::encode(static_cast<typename e::wide>(7));
  for (auto set : supported_instruction_sets()) {
    placed_values<T> out{std::vector<T>(count), 3};
    scale_values(datatype_kernels_for(e::type, set), reinterpret_cast<const std::byte*>(&factor),
                 reinterpret_cast<const std::byte*>(values.data()), out.data(), count);
    CHECK(out.first_difference(scaled(values, 7)) == count);
  }
}

TEST_CASE("factor: is rounded to the datatype once") {
  // Halfway between two float16 but for a bit that float32 does not have.
  const double factor = 1 + std::ldexp(1, -11) + std::ldexp(1, -40);
  const test::half one{0x3c00};
  test::half product{};
  scale(proto::FLOAT16, factor, reinterpret_cast<const std::byte*>(&one), reinterpret_cast<std::byte*>(&product), 1);
  CHECK(product.bits == 0x3c01);
}

TEST_CASE("factor: of integers must be whole and in range") {
  CHECK(fault(proto::INT32, 2.5)
        == "the factor is 2.5, but of int32 it must be whole and from -2147483648 to 2147483647");
  CHECK(fault(proto::UINT8, -1) == "the factor is -1, but of uint8 it must be whole and from 0 to 255");
  CHECK(fault(proto::INT8, 128) == "the factor is 128, but of int8 it must be whole and from -128 to 127");
  CHECK(fault(proto::INT8, -128) == "");
  CHECK(fault(proto::UINT32, 4294967295.0) == "");
  CHECK(fault(proto::UINT32, 4294967296.0) != "");
  CHECK(fault(proto::INT64, -std::ldexp(1, 63)) == "");
  CHECK(fault(proto::INT64, std::ldexp(1, 63)) != "");
  CHECK(fault(proto::UINT64, std::ldexp(1, 63)) == "");
  CHECK(fault(proto::UINT64, std::ldexp(1, 64)) != "");
  for (double factor : {double(NAN), double(INFINITY), -double(INFINITY)})
    for (auto type : {proto::INT8, proto::UINT8, proto::INT32, proto::UINT32, proto::INT64, proto::UINT64})
      CHECK(fault(type, factor) != "");
}

TEST_CASE("factor: of floats must be finite in the datatype") {
  for (double factor : {double(NAN), double(INFINITY), -double(INFINITY)})
    for (auto type :
         {proto::FLOAT64, proto::FLOAT32, proto::FLOAT16, proto::BFLOAT16, proto::FLOAT8_E4M3, proto::FLOAT8_E5M2})
      CHECK(fault(type, factor) != "");
  CHECK(fault(proto::FLOAT16, 1e6) == "the factor is 1000000, which is not finite in float16");
  CHECK(fault(proto::FLOAT16, 65519) == "");
  CHECK(fault(proto::FLOAT8_E4M3, 464) == "");
  CHECK(fault(proto::FLOAT8_E4M3, 465) != "");
  CHECK(fault(proto::FLOAT32, 1e39) != "");
  CHECK(fault(proto::FLOAT32, -3.4e38) == "");
  CHECK(fault(proto::FLOAT64, 1e300) == "");
  CHECK(fault(static_cast<proto::DataType>(99), 1) == "there is no datatype of number 99");
}
