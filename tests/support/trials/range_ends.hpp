#pragma once

#include "runtime/reduction/datatypes.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/samples/sample_hash.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

// Averages and sums with factors of inputs at the ends of a datatype's range, and what they are exactly: integers in
// 128 bits, floats in long double, which holds every sum here.

namespace ringmaster::test {

/// Numbers of any datatype of the table.
class datatype_numbers {
public:
  explicit datatype_numbers(const known_datatype& type) : type_(type) {
    if (!type.is_float)
      return;
    if (type.value == proto::FLOAT32 || type.value == proto::FLOAT64) {
      const bool wide = type.value == proto::FLOAT64;
      largest_ = wide ? std::numeric_limits<double>::max() : static_cast<double>(std::numeric_limits<float>::max());
      smallest_ = wide ? std::numeric_limits<double>::denorm_min()
                       : static_cast<double>(std::numeric_limits<float>::denorm_min());
      epsilon_ = wide ? std::numeric_limits<double>::epsilon()
                      : static_cast<double>(std::numeric_limits<float>::epsilon());
      return;
    }
    largest_ = 0;
    smallest_ = 1;
    double above_one = 2;
    for (uint32_t bits = 0; bits < uint32_t{1} << (8 * type.element_bytes); ++bits) { // few: small floats
      const auto value = decoded(reinterpret_cast<const std::byte*>(&bits));
      if (!std::isfinite(value))
        continue;
      largest_ = std::max(largest_, value);
      smallest_ = value > 0 ? std::min(smallest_, value) : smallest_;
      above_one = value > 1 ? std::min(above_one, value) : above_one;
    }
    epsilon_ = above_one - 1;
  }

  double largest() const { return largest_; }
  double smallest() const { return smallest_; }
  double epsilon() const { return epsilon_; }

  double decoded(const std::byte* from) const {
    switch (type_.value) {
      case proto::FLOAT64: return read<double>(from);
      case proto::FLOAT32: return static_cast<double>(read<float>(from));
      default: break;
    }
    float result = 0;
    type_.kernels(best_instruction_set()).decode(from, reinterpret_cast<std::byte*>(&result), 1);
    return static_cast<double>(result);
  }

  __int128 whole(const std::byte* from) const {
    uint64_t bits = 0;
    std::memcpy(&bits, from, type_.element_bytes);
    const auto unused = 64 - 8 * type_.element_bytes;
    return type_.least < 0 ? __int128{static_cast<int64_t>(bits << unused) >> unused} : __int128{bits};
  }

private:
  template <class T>
  static T read(const std::byte* from) {
    T result;
    std::memcpy(&result, from, sizeof result);
    return result;
  }

  const known_datatype& type_;
  double largest_ = 0, smallest_ = 0, epsilon_ = 0;
};

inline const datatype_numbers& numbers_of(const known_datatype& type) {
  static std::map<proto::DataType, datatype_numbers> known;
  return known.try_emplace(type.value, type).first->second;
}

/// Factors of PREMUL_SUM: partial sums leave the range and come back.
inline double end_factor(const known_datatype& type, uint32_t rank) {
  if (type.is_float)
    return rank % 4 < 2 ? 1 : -1;
  constexpr double with_sign[] = {3, -1, -2}, without[] = {1, 2, 3};
  return (type.least < 0 ? with_sign : without)[rank % 3];
}

/// One rank's elements: by their index, all ranks have the largest or lowest number, both of them alternating, large
/// numbers beside 0, random ones near the ends or of the whole range, small ones, or the smallest.
inline std::vector<std::byte> end_values(const known_datatype& type, uint32_t rank, uint64_t count, uint64_t salt) {
  std::vector<std::byte> result(count * type.element_bytes);
  const auto seed = sample_seed(rank, salt);
  const auto& numbers = numbers_of(type);
  for (uint64_t i = 0; i < count; ++i) {
    const auto hash = sample_hash(seed, i);
    const auto part = static_cast<double>(hash >> 11) / static_cast<double>(uint64_t{1} << 53); // 0 to 1
    auto* to = result.data() + i * type.element_bytes;
    const auto pattern = (i + salt) % 8;
    if (!type.is_float) {
      const auto most = type.most, least = static_cast<uint64_t>(type.least);
      const std::array<uint64_t, 8> bits{most,
                                         least,
                                         rank % 2 == 0 ? most : least,
                                         rank == 0 ? most : 0,
                                         hash,
                                         most - hash % 5,
                                         hash % 7,
                                         rank % 2 == 0 ? least : least + hash % 5};
      std::memcpy(to, &bits[pattern], type.element_bytes);
      continue;
    }
    const auto most = numbers.largest();
    const std::array<double, 8> values{most,
                                       -most,
                                       rank % 2 == 0 ? most : -most,
                                       rank == 0 ? most : 0,
                                       (part - 0.5) * 1.9 * most,
                                       most * (1 - part / 16),
                                       static_cast<double>(hash % 5) - 2,
                                       numbers.smallest() * static_cast<double>(hash % 3)};
    type.store(values[pattern], to);
  }
  return result;
}

/// What is wrong with `found`, the average of the column or its sum with factors; empty: nothing. Integers are exact.
/// Floats are off by the rounding of as many additions as there are ranks, of numbers no larger than the largest
/// operand or result; what is too large is infinite, or NaN where there is no infinity. `members`: whose factors count.
inline std::string wrong_average(const known_datatype& type, gpu_sim::ReduceOp op,
                                 const std::vector<const std::byte*>& column, const std::vector<uint32_t>& members,
                                 const std::byte* found) {
  const auto& numbers = numbers_of(type);
  const auto ranks = column.size();
  if (!type.is_float) {
    __int128 sum = 0;
    for (size_t i = 0; i < ranks; ++i)
      sum += numbers.whole(column[i])
             * (op == gpu_sim::PREMUL_SUM ? static_cast<__int128>(end_factor(type, members[i])) : 1);
    if (op == gpu_sim::AVG)
      sum /= static_cast<__int128>(ranks);
    const auto right = static_cast<uint64_t>(sum); // what is too large has wrapped around
    std::array<std::byte, 8> bytes;
    std::memcpy(bytes.data(), &right, bytes.size());
    if (std::memcmp(bytes.data(), found, type.element_bytes) == 0)
      return {};
    return fmt::format("{} in place of {}", static_cast<int64_t>(numbers.whole(found)), static_cast<int64_t>(sum));
  }
  long double sum = 0, largest = 0;
  for (size_t i = 0; i < ranks; ++i) {
    const auto factor = op == gpu_sim::PREMUL_SUM ? end_factor(type, members[i]) : 1;
    const auto operand = static_cast<long double>(numbers.decoded(column[i])) * factor;
    sum += operand;
    largest = std::max(largest, std::fabs(operand));
  }
  const auto right = op == gpu_sim::AVG ? sum / static_cast<long double>(ranks) : sum;
  const auto got = static_cast<long double>(numbers.decoded(found));
  const auto scale = std::max(largest, std::fabs(right));
  // Operands that were scaled down lose what is below the smallest number, which is scaled up again in a sum.
  const auto lost = numbers.smallest() * (op == gpu_sim::AVG ? 1.0 : 2.0 * static_cast<double>(ranks));
  const auto error = static_cast<long double>(ranks) * (numbers.epsilon() * scale + lost);
  // A sum that is nearly too large may be rounded to infinity; a mean is not.
  const auto reach = std::fabs(right) + (op == gpu_sim::AVG ? 0 : error);
  const bool too_large = reach > static_cast<long double>(numbers.largest());
  const bool right_or_near = std::isfinite(got) ? std::fabs(got - right) <= error : too_large;
  return right_or_near ? std::string{}
                       : fmt::format("{} in place of {}", static_cast<double>(got), static_cast<double>(right));
}

} // namespace ringmaster::test
