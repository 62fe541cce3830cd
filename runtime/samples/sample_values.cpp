#include "runtime/samples/sample_values.hpp"

#include "runtime/invariants/ensure.hpp"
#include "runtime/samples/sample_hash.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace ringmaster {

namespace {

constexpr uint64_t few_ranks = 8; ///< The ranks that contribute to an element if the datatype has few digits.

void store_bits(uint64_t bits, size_t bytes, std::byte* to) {
  switch (bytes) { // a constant number of bytes is one instruction
    case 1: std::memcpy(to, &bits, 1); break;
    case 2: std::memcpy(to, &bits, 2); break;
    case 4: std::memcpy(to, &bits, 4); break;
    default: std::memcpy(to, &bits, 8); break;
  }
}

/// The power of two up to which the float represents all whole numbers; at most 2^24.
uint64_t whole_numbers_end(const known_datatype& type) {
  std::array<std::byte, element_bytes_max> power{}, next{};
  for (uint32_t digits = 1; digits < 24; ++digits) {
    const auto end = std::ldexp(1.0, static_cast<int>(digits));
    const bool finite = type.store(end, power.data()) && type.store(end + 1, next.data());
    if (!finite || std::memcmp(power.data(), next.data(), type.element_bytes) == 0)
      return uint64_t{1} << digits;
    type.store(end + 2, power.data());
    if (std::memcmp(power.data(), next.data(), type.element_bytes) == 0)
      return uint64_t{1} << digits;
  }
  return uint64_t{1} << 24;
}

} // namespace

sample_values::sample_values(const known_datatype& type, std::optional<gpu_sim::ReduceOp> op, uint32_t ranks,
                             uint64_t salt)
  : type_(type), op_(op), salt_(salt) {
  ensure(ranks > 0, "data are those of at least one rank");
  if (!op)
    return;
  const bool picks_one = op == gpu_sim::MIN || op == gpu_sim::MAX;
  if (!type.is_float) {
    if (picks_one && type.element_bytes == 1) // with many ranks, one would always have the smallest value of the type
      every_ = static_cast<uint32_t>((ranks + few_ranks - 1) / few_ranks);
    return;
  }
  const auto end = whole_numbers_end(type);
  const auto contributors = std::min<uint64_t>(ranks, std::max(few_ranks, end / few_ranks));
  every_ = static_cast<uint32_t>((ranks + contributors - 1) / contributors);
  most_ = picks_one ? end - 1 : end / contributors;
  if (op == gpu_sim::PROD)
    every_ = static_cast<uint32_t>((ranks + few_ranks - 1) / few_ranks);
  ensure(every_ >= 1 && most_ >= 1, "at least one rank contributes, with more than zeros");
}

bool sample_values::contributes(uint32_t rank, uint64_t index) const {
  return every_ == 1 || (mixed_bits(index + salt_) + rank) % every_ == 0;
}

void sample_values::whole_numbers(uint32_t rank, uint64_t first, std::span<wide> to) const {
  const auto seed = sample_seed(rank, salt_);
  const auto unused = 64 - 8 * type_.element_bytes;
  const bool is_signed = type_.least < 0;
  for (uint64_t i = 0; i < to.size(); ++i) {
    auto bits = sample_hash(seed, first + i) << unused;
    if (op_ == gpu_sim::PROD)
      bits |= uint64_t{1} << unused;
    to[i] = is_signed ? wide{static_cast<int64_t>(bits) >> unused} : wide{bits >> unused};
    if (!contributes(rank, first + i)) // a minimum or maximum
      to[i] = op_ == gpu_sim::MIN ? wide{type_.most} : wide{type_.least};
  }
}

double sample_values::real_number(uint32_t rank, uint64_t hash, uint64_t index) const {
  const bool contributing = contributes(rank, index);
  if (op_ == gpu_sim::PROD) {
    const double sign = (hash & 1) != 0 ? 1 : -1;
    return !contributing ? sign : (hash & 2) != 0 ? sign * 2 : sign / 2;
  }
  if (contributing)
    return static_cast<double>(sample_whole_number(hash, most_));
  const auto most = static_cast<double>(most_);
  return op_ == gpu_sim::MIN ? most : op_ == gpu_sim::MAX ? -most : 0;
}

void sample_values::real_numbers(uint32_t rank, uint64_t first, std::span<double> to) const {
  const auto seed = sample_seed(rank, salt_);
  if (every_ == 1 && op_ != gpu_sim::PROD) { // the most common case, in a simple loop
    for (uint64_t i = 0; i < to.size(); ++i)
      to[i] = static_cast<double>(sample_whole_number(sample_hash(seed, first + i), most_));
    return;
  }
  for (uint64_t i = 0; i < to.size(); ++i)
    to[i] = real_number(rank, sample_hash(seed, first + i), first + i);
}

void sample_values::store(std::span<const wide> values, std::byte* to) const {
  for (auto x : values) {
    store_bits(static_cast<uint64_t>(x), type_.element_bytes, to); // the low bytes: integers wrap around
    to += type_.element_bytes;
  }
}

void sample_values::store(std::span<const double> values, std::byte* to) const {
  if (type_.value == proto::FLOAT32)
    for (auto x : values) {
      const auto rounded = static_cast<float>(x);
      std::memcpy(to, &rounded, sizeof rounded);
      to += sizeof rounded;
    }
  else // narrow floats are computed in float32, then rounded
    for (auto x : values) {
      type_.store(type_.element_bytes < sizeof(float) ? static_cast<float>(x) : x, to);
      to += type_.element_bytes;
    }
}

void sample_values::combine(std::span<wide> result, std::span<const wide> next) const {
  for (size_t i = 0; i < result.size(); ++i)
    switch (*op_) {
      case gpu_sim::PROD:
        result[i] = wide{static_cast<uint64_t>(result[i]) * static_cast<uint64_t>(next[i])}; // low bits alone count
        break;
      case gpu_sim::MIN: result[i] = std::min(result[i], next[i]); break;
      case gpu_sim::MAX: result[i] = std::max(result[i], next[i]); break;
      default: result[i] += next[i]; break;
    }
}

void sample_values::combine(std::span<double> result, std::span<const double> next) const {
  for (size_t i = 0; i < result.size(); ++i)
    switch (*op_) {
      case gpu_sim::PROD: result[i] *= next[i]; break;
      case gpu_sim::MIN: result[i] = std::min(result[i], next[i]); break;
      case gpu_sim::MAX: result[i] = std::max(result[i], next[i]); break;
      default: result[i] += next[i]; break;
    }
}

template <class Number, class Numbers>
void sample_values::reduced_in(Numbers&& numbers, std::span<const uint32_t> members, uint64_t first, uint64_t count,
                               std::byte* to) const {
  std::array<Number, piece> all, one;
  for (uint64_t done = 0; done < count; done += piece) {
    const auto n = std::min(piece, count - done);
    const std::span result{all.data(), n}, next{one.data(), n};
    numbers(members[0], first + done, result);
    for (auto rank : members.subspan(1)) {
      numbers(rank, first + done, next);
      combine(result, std::span<const Number>{next});
    }
    if (op_ == gpu_sim::AVG)
      for (auto& x : result)
        x /= static_cast<Number>(members.size());
    store(std::span<const Number>{result}, to + done * type_.element_bytes);
  }
}

void sample_values::input(uint32_t rank, uint64_t first, uint64_t count, std::byte* to) const {
  const auto element = type_.element_bytes;
  if (op_ && type_.is_float) {
    std::array<double, piece> values;
    for (uint64_t done = 0; done < count; done += piece) {
      const std::span part{values.data(), std::min(piece, count - done)};
      real_numbers(rank, first + done, part);
      store(std::span<const double>{part}, to + done * element);
    }
  } else if (op_) {
    std::array<wide, piece> values;
    for (uint64_t done = 0; done < count; done += piece) {
      const std::span part{values.data(), std::min(piece, count - done)};
      whole_numbers(rank, first + done, part);
      store(std::span<const wide>{part}, to + done * element);
    }
  } else {
    const auto seed = sample_seed(rank, salt_);
    for (uint64_t i = 0; i < count; ++i)
      store_bits(sample_hash(seed, first + i), element, to + i * element);
  }
}

void sample_values::reduced(std::span<const uint32_t> members, uint64_t first, uint64_t count, std::byte* to) const {
  ensure(op_.has_value() && !members.empty(), "a reduction has an operation and at least one member");
  if (type_.is_float)
    reduced_in<double>([this](auto... x) { real_numbers(x...); }, members, first, count, to);
  else
    reduced_in<wide>([this](auto... x) { whole_numbers(x...); }, members, first, count, to);
}

} // namespace ringmaster
