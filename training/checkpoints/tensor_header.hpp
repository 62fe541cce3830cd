#pragma once

#include "training/checkpoints/safetensors.hpp"

#include <optional>

namespace ringmaster::training {

inline constexpr std::string_view metadata_name = "__metadata__";
inline constexpr uint64_t header_bytes_max = 100'000'000; ///< The format's own limit.
inline constexpr size_t digest_letters = 16;

/// What a header says; tensors in the order of their bytes, which are not there yet but counted.
struct tensor_header {
  struct entry {
    stored_tensor tensor;
    uint64_t begin = 0, end = 0; ///< Of its bytes, from the end of the header.
  };
  std::vector<entry> entries;
  tensor_metadata metadata;
  std::optional<size_t> digest_at; ///< Where the digest's digits stand in the header.
};

/// Bytes of a tensor; nothing where the type is unknown or they are more than 2^53.
std::optional<uint64_t> bytes_of(std::string_view type, std::span<const uint64_t> shape);

/// Reads a header; its tensors cover `data_bytes` without a gap. Errors: corrupt, with the place in the header.
caf::expected<tensor_header> parse_tensor_header(std::string_view header, uint64_t data_bytes);

/// The header of tensors in this order, padded to a multiple of 8, with a digest of zeros.
std::string tensor_header_text(std::span<const stored_tensor> tensors, const tensor_metadata& metadata);

/// Where the digest's digits stand in a header that `tensor_header_text` made.
size_t digest_place(std::string_view header);

/// The header has zeros in the digest's place.
std::string digest_of(std::string_view header, std::span<const stored_tensor> tensors);

} // namespace ringmaster::training
