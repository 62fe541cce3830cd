#pragma once

#include "training/data/text_folder.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ringmaster::training {

/// How often each byte came after each context, and what that says of the next one.
class byte_counts {
public:
  explicit byte_counts(size_t contexts) : counts_(contexts * 256), totals_(contexts), kinds_(contexts) {}

  void add(size_t context, uint8_t next);
  /// Witten and Bell 1991, method C, as PPM mixes its orders: (count + kinds x lower) / (total + kinds), where `kinds`
  /// different bytes came behind the context, and `lower` is the probability by a shorter one. A context that never
  /// came says nothing: `lower`.
  double probability(size_t context, uint8_t next, double lower) const;

private:
  std::vector<uint32_t> counts_; ///< 256 a context; stays at its maximum.
  std::vector<uint64_t> totals_;
  std::vector<uint16_t> kinds_;
};

/// A prediction of a text's next byte from the two before it: the yardstick for a model that sees more. Takes 65 MiB.
class order_2_model {
public:
  /// A text to learn from; what follows is another one.
  void add(std::span<const std::byte> text);

  /// Of `next` after the last two bytes of `before`, or after fewer where there are fewer. Above 0; of all 256 they
  /// are 1.
  double probability(std::span<const std::byte> before, std::byte next) const;

  /// What the text's bytes after the first `known` take together if they are coded by their probabilities.
  double bits(std::span<const std::byte> text, size_t known = 0) const;

private:
  std::array<byte_counts, 3> orders_{byte_counts{1}, byte_counts{1 << 8}, byte_counts{1 << 16}};
};

/// Bits a byte over the labels of these samples: a model that sees a window has no more to tell them by than what
/// stands before them there. 8 where nothing was learned, 0 where there is no sample.
double bits_per_byte(const order_2_model& model, const byte_windows& windows, std::span<const uint32_t> samples);

} // namespace ringmaster::training
