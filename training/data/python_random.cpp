#include "training/data/python_random.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace ringmaster::training {

namespace {

/// What std::mt19937 asks for the words that it begins with: init_by_array of the authors' program, mt19937ar.c.
class array_seed {
public:
  using result_type = uint32_t;

  explicit array_seed(std::span<const uint32_t> key) : key_(key) {}

  template <class Iterator>
  void generate(Iterator first, Iterator last) const {
    const auto count = static_cast<size_t>(last - first);
    first[0] = 19650218;
    for (uint32_t i = 1; i < count; ++i)
      first[i] = 1812433253u * (first[i - 1] ^ first[i - 1] >> 30) + i;
    size_t i = 1, j = 0;
    auto advance = [&] {
      if (++i == count) {
        first[0] = first[count - 1];
        i = 1;
      }
    };
    for (auto k = std::max(count, key_.size()); k > 0; --k) {
      const auto word = key_[j] + static_cast<uint32_t>(j);
      first[i] = (first[i] ^ (first[i - 1] ^ first[i - 1] >> 30) * 1664525u) + word;
      j = j + 1 == key_.size() ? 0 : j + 1;
      advance();
    }
    for (auto k = count - 1; k > 0; --k) {
      first[i] = (first[i] ^ (first[i - 1] ^ first[i - 1] >> 30) * 1566083941u) - static_cast<uint32_t>(i);
      advance();
    }
    first[0] = 0x80000000;
  }

private:
  std::span<const uint32_t> key_;
};

std::mt19937 seeded(std::span<const uint32_t> words) {
  array_seed seed{words};
  return std::mt19937{seed};
}

/// x = x * factor + more, of a number in words of 32 bits.
void multiply_add(std::vector<uint32_t>& x, uint32_t factor, uint32_t more) {
  uint64_t carry = more;
  for (auto& word : x) {
    carry += uint64_t{word} * factor;
    word = static_cast<uint32_t>(carry);
    carry >>= 32;
  }
  if (carry > 0)
    x.push_back(static_cast<uint32_t>(carry));
}

/// The remainder of x, which becomes x / divisor.
uint32_t divide(std::vector<uint32_t>& x, uint32_t divisor) {
  uint64_t rest = 0;
  for (size_t i = x.size(); i > 0; --i) {
    rest = rest << 32 | x[i - 1];
    x[i - 1] = static_cast<uint32_t>(rest / divisor);
    rest %= divisor;
  }
  while (!x.empty() && x.back() == 0)
    x.pop_back();
  return static_cast<uint32_t>(rest);
}

std::string decimal_text(std::vector<uint32_t> x) {
  constexpr uint32_t nine_digits = 1'000'000'000;
  std::string result;
  while (!x.empty()) {
    auto part = divide(x, nine_digits);
    for (int i = 0; i < 9 && (part > 0 || !x.empty()); ++i, part /= 10)
      result += static_cast<char>('0' + part % 10);
  }
  std::ranges::reverse(result);
  return result.empty() ? "0" : result;
}

/// -1: it is no digit of that base.
int digit_of(char letter, uint32_t base) {
  const auto small = letter >= 'A' && letter <= 'F' ? letter - 'A' + 'a' : letter;
  const auto value = small >= '0' && small <= '9' ? small - '0' : small >= 'a' && small <= 'f' ? small - 'a' + 10 : 99;
  return value < static_cast<int>(base) ? value : -1;
}

} // namespace

python_seed::python_seed(uint64_t seed, uint64_t high)
  : words_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), static_cast<uint32_t>(high),
           static_cast<uint32_t>(high >> 32)} {
  while (words_.size() > 1 && words_.back() == 0)
    words_.pop_back();
  text_ = decimal_text(words_);
}

caf::expected<python_seed> python_seed::parse(std::string_view text) {
  auto wrong = [&](std::string_view why) {
    return invalid(fmt::format("\"{}\" is no whole number: {}", text.substr(0, 40), why));
  };
  const bool is_negative = text.starts_with('-');
  auto digits = text.substr(is_negative || text.starts_with('+') ? 1 : 0);
  const bool is_hexadecimal = digits.starts_with("0x") || digits.starts_with("0X");
  const uint32_t base = is_hexadecimal ? 16 : 10;
  digits.remove_prefix(is_hexadecimal ? 2 : 0);
  if (digits.empty())
    return wrong("it has no digits");
  if (digits.size() > digits_max)
    return wrong(fmt::format("it has more than {} digits", digits_max));
  python_seed result;
  for (auto letter : digits) {
    const auto digit = digit_of(letter, base);
    if (digit < 0)
      return wrong("write one such as 1234, -5 or 0x1f");
    multiply_add(result.words_, base, static_cast<uint32_t>(digit));
  }
  const auto size = decimal_text(result.words_);
  result.text_ = fmt::format("{}{}", is_negative && size != "0" ? "-" : "", size);
  return result;
}

python_random::python_random(const python_seed& seed) : words_(seeded(seed.words())) {}

uint64_t python_random::bits(uint32_t count) {
  auto top = [this](uint32_t wanted) { return uint64_t{static_cast<uint32_t>(words_())} >> (32 - wanted); };
  if (count <= 32)
    return top(count);
  const auto low = top(32);
  return low | top(count - 32) << 32;
}

uint64_t python_random::below(uint64_t limit) {
  const auto width = static_cast<uint32_t>(std::bit_width(limit));
  auto result = bits(width);
  while (result >= limit)
    result = bits(width);
  return result;
}

} // namespace ringmaster::training
