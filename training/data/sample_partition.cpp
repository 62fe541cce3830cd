#include "training/data/sample_partition.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace ringmaster::training {

uint64_t decimal_fraction::of(uint64_t count) const {
  __extension__ using product = unsigned __int128;
  return static_cast<uint64_t>(product{count} * value / one);
}

caf::expected<decimal_fraction> parse_fraction(std::string_view text) {
  auto wrong = [&](std::string_view why) {
    return invalid(fmt::format("\"{}\" is no fraction: {}; write a number above 0 and 1 at most, such as 0.7", text,
                               why));
  };
  constexpr std::string_view digits = "0123456789";
  const auto point = std::min(text.find('.'), text.size());
  const auto before = text.substr(0, point), behind = text.substr(std::min(point + 1, text.size()));
  if (before.size() + behind.size() == 0 || before.find_first_not_of(digits) != before.npos
      || behind.find_first_not_of(digits) != behind.npos)
    return wrong("it is not a number in decimals");
  if (behind.size() > 18)
    return wrong("there are more than 18 digits behind the point");
  uint64_t whole = 0, value = 0;
  for (auto digit : before)
    whole = std::min<uint64_t>(2, whole * 10 + static_cast<uint64_t>(digit - '0'));
  for (size_t i = 0; i < 18; ++i)
    value = value * 10 + (i < behind.size() ? static_cast<uint64_t>(behind[i] - '0') : 0);
  value += whole * decimal_fraction::one;
  if (value == 0)
    return wrong("it is 0");
  if (value > decimal_fraction::one)
    return wrong("it is more than 1");
  return decimal_fraction{value};
}

caf::expected<std::vector<decimal_fraction>> parse_fractions(std::string_view text) {
  std::vector<decimal_fraction> result;
  uint64_t sum = 0;
  for (size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    TRY(fraction, parse_fraction(text.substr(begin, end - begin)));
    sum += fraction->value;
    if (sum > decimal_fraction::one)
      return invalid(fmt::format("the fractions {} are more than 1 together, from the {}. on", text,
                                 result.size() + 1));
    result.push_back(*fraction);
    begin = end + 1;
  }
  return result;
}

caf::expected<std::vector<uint64_t>> equal_counts(uint64_t samples, uint64_t ranks) {
  if (ranks == 0)
    return invalid("samples cannot be parted among 0 ranks: there must be one at least");
  return std::vector<uint64_t>(ranks, samples / ranks);
}

caf::expected<std::vector<uint64_t>> counts_by(uint64_t samples, std::span<const decimal_fraction> fractions) {
  std::vector<uint64_t> result;
  auto left = decimal_fraction::one;
  for (auto& fraction : fractions) {
    if (fraction.value > left)
      return invalid(fmt::format("the fractions are more than 1 together, from that of rank {} on", result.size()));
    left -= fraction.value;
    result.push_back(fraction.of(samples));
  }
  return result;
}

std::vector<uint32_t> shuffled_samples(uint32_t count, uint64_t seed, uint64_t high, const partition_watch& watch) {
  return shuffled_samples(count, python_seed{seed, high}, watch);
}

std::vector<uint32_t> shuffled_samples(uint32_t count, const python_seed& seed, const partition_watch& watch) {
  std::vector<uint32_t> result(count);
  std::iota(result.begin(), result.end(), 0);
  python_random{seed}.shuffle(std::span{result}, watch);
  return result;
}

sample_partition::sample_partition(uint64_t samples, const python_seed& seed, std::span<const uint64_t> counts,
                                   const partition_watch& watch)
  : order_(shuffled_samples(static_cast<uint32_t>(samples), seed, watch)), ends_{0} {
  for (auto count : counts)
    ends_.push_back(ends_.back() + count);
  ensure(samples <= partitioned_samples_max && ends_.back() <= samples, "the parts lie within the samples");
}

} // namespace ringmaster::training
