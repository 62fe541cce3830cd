#include "training/data/yardsticks/order_2_model.hpp"

#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <string>

using namespace ringmaster::training;
using ringmaster::test::temporary_directory;

namespace {

std::span<const std::byte> bytes_in(std::string_view text) {
  return std::as_bytes(std::span{text});
}

double chance(const order_2_model& model, std::string_view before, char next) {
  return model.probability(bytes_in(before), static_cast<std::byte>(next));
}

} // namespace

// All figures are counted by hand.

TEST_CASE("order-2 model: each order is mixed with the shorter one by how many kinds of bytes it saw") {
  order_2_model model;
  model.add(bytes_in("abab"));
  const auto a = (2 + 2. / 256) / (4 + 2); // 2 of 4 bytes, of 2 kinds
  CHECK(chance(model, "", 'a') == doctest::Approx(a));
  CHECK(chance(model, "", 'z') == doctest::Approx(2. / 256 / 6));
  const auto b_behind_a = (2 + a) / (2 + 1), a_behind_b = (1 + a) / (1 + 1); // b is as likely as a
  CHECK(chance(model, "a", 'b') == doctest::Approx(b_behind_a));
  CHECK(chance(model, "b", 'a') == doctest::Approx(a_behind_b));
  CHECK(chance(model, "ab", 'a') == doctest::Approx((1 + a_behind_b) / 2));
  CHECK(chance(model, "ba", 'b') == doctest::Approx((1 + b_behind_a) / 2));
  CHECK(chance(model, "zab", 'a') == chance(model, "ab", 'a')); // only two count
}

TEST_CASE("order-2 model: a context that never came says what the shorter one says") {
  order_2_model model;
  model.add(bytes_in("abab"));
  CHECK(chance(model, "zb", 'a') == chance(model, "b", 'a'));
  CHECK(chance(model, "zz", 'a') == chance(model, "", 'a'));
}

TEST_CASE("order-2 model: a context with several followers") {
  order_2_model model;
  model.add(bytes_in("xyaxybxya")); // behind xy: a, b, a
  // order 0: a 2, b 1, x 3, y 3; behind y: a, b, a; behind xy the same
  const auto a = (2 + 4. / 256) / (9 + 4), a_behind_y = (2 + 2 * a) / (3 + 2);
  CHECK(chance(model, "xy", 'a') == doctest::Approx((2 + 2 * a_behind_y) / (3 + 2)));
}

TEST_CASE("order-2 model: the probabilities of all bytes are 1 together, behind any context") {
  order_2_model model;
  model.add(bytes_in("the cat sat on the mat, the rat on the cat"));
  for (auto* before : {"", "t", "at", "th", "qq", "\xff\xff"}) {
    double sum = 0;
    for (int next = 0; next < 256; ++next)
      sum += chance(model, before, static_cast<char>(next));
    CHECK(sum == doctest::Approx(1));
  }
}

TEST_CASE("order-2 model: a text takes the bits of its bytes, and each text starts from the beginning") {
  order_2_model model;
  model.add(bytes_in("ab"));
  model.add(bytes_in("ab")); // nothing came behind b
  const auto a = (2 + 2. / 256) / 6, b_behind_a = (2 + a) / 3;
  CHECK(model.bits(bytes_in("ab")) == doctest::Approx(-std::log2(a) - std::log2(b_behind_a)));
  CHECK(chance(model, "b", 'a') == chance(model, "", 'a'));
  CHECK(model.bits(bytes_in("ab"), 1) == doctest::Approx(-std::log2(b_behind_a)));
  CHECK(model.bits({}) == 0);
}

TEST_CASE("order-2 model: 8 bits a byte before anything was learned, fewer for more of the same") {
  order_2_model model;
  const auto text = bytes_in(
    "It is a truth universally acknowledged, that a single man in possession of a good fortune");
  const auto bits = [&] { return model.bits(text) / static_cast<double>(text.size()); };
  CHECK(bits() == doctest::Approx(8));
  model.add(text);
  const auto once = bits();
  model.add(text);
  CHECK(once < 4);
  CHECK(bits() < once);
  CHECK(model.bits(bytes_in("\x01\x02\x03")) > 3 * 8);
}

TEST_CASE("order-2 model: of samples their labels count, predicted from the bytes before them in their windows") {
  temporary_directory dir;
  std::ofstream{dir.path() / "a"} << "abcabcab";
  auto read = file_bytes::of(dir.path() / "a");
  REQUIRE(read);
  auto windows = byte_windows::over({{"a", std::make_shared<const file_bytes>(std::move(*read))}}, 3, 3);
  REQUIRE(windows);
  REQUIRE((*windows)->count() == 2); // abc and a, abc and a
  order_2_model model;
  CHECK(bits_per_byte(model, **windows, std::vector<uint32_t>{0, 1}) == doctest::Approx(8));
  CHECK(bits_per_byte(model, **windows, {}) == 0);
  model.add(bytes_in("abc"));
  CHECK(bits_per_byte(model, **windows, std::vector<uint32_t>{1})
        == doctest::Approx(model.bits((*windows)->text_of(1), 1) / 3));
}
