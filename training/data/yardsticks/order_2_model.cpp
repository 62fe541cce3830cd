#include "training/data/yardsticks/order_2_model.hpp"

#include <algorithm>
#include <cmath>

namespace ringmaster::training {

namespace {

/// The number of the last `order` bytes among all that there can be.
size_t context_of(std::span<const std::byte> before, size_t order) {
  size_t result = 0;
  for (auto byte : before.last(order))
    result = result << 8 | std::to_integer<size_t>(byte);
  return result;
}

} // namespace

void byte_counts::add(size_t context, uint8_t next) {
  auto& count = counts_[context * 256 + next];
  kinds_[context] = static_cast<uint16_t>(kinds_[context] + (count == 0 ? 1 : 0));
  if (count < UINT32_MAX) {
    ++count;
    ++totals_[context];
  }
}

double byte_counts::probability(size_t context, uint8_t next, double lower) const {
  const double kinds = kinds_[context], total = static_cast<double>(totals_[context]);
  return total == 0 ? lower : (counts_[context * 256 + next] + kinds * lower) / (total + kinds);
}

void order_2_model::add(std::span<const std::byte> text) {
  for (size_t i = 0; i < text.size(); ++i)
    for (size_t order = 0; order <= std::min<size_t>(i, 2); ++order)
      orders_[order].add(context_of(text.first(i), order), std::to_integer<uint8_t>(text[i]));
}

double order_2_model::probability(std::span<const std::byte> before, std::byte next) const {
  double result = 1. / 256;
  for (size_t order = 0; order <= std::min<size_t>(before.size(), 2); ++order)
    result = orders_[order].probability(context_of(before, order), std::to_integer<uint8_t>(next), result);
  return result;
}

double order_2_model::bits(std::span<const std::byte> text, size_t known) const {
  double result = 0;
  for (size_t i = known; i < text.size(); ++i)
    result -= std::log2(probability(text.first(i), text[i]));
  return result;
}

double bits_per_byte(const order_2_model& model, const byte_windows& windows, std::span<const uint32_t> samples) {
  double bits = 0;
  for (auto sample : samples)
    bits += model.bits(windows.text_of(sample), 1);
  const auto bytes = samples.size() * windows.labels_each();
  return bytes == 0 ? 0 : bits / static_cast<double>(bytes);
}

} // namespace ringmaster::training
