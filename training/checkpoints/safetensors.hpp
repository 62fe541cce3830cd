#pragma once

#include "training/data/file_bytes.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster::training {

/// How elements are stored, by the format's name for it.
struct stored_type {
  std::string_view name; ///< "F32"
  uint32_t bytes;        ///< Of an element.
};
std::span<const stored_type> stored_types();

/// A tensor that is written, or that was read.
struct stored_tensor {
  std::string name;                   ///< Its own among the others, and not "__metadata__".
  std::string type;                   ///< One of the stored types.
  std::vector<uint64_t> shape{};      ///< Empty: one element.
  std::span<const std::byte> bytes{}; ///< Row by row, little-endian. Not owned.
};

using tensor_metadata = std::map<std::string, std::string, std::less<>>;
/// Where a file's digest stands among its metadata: 16 hexadecimal digits.
inline constexpr std::string_view digest_key = "ringmaster.xxh3";

/// A file of tensors as the safetensors format has it, which other programs read: 8 bytes, the header's length; the
/// header, JSON with each tensor's type, shape and place, and texts; and the bytes, without a gap.
///
/// Its digest is link_checksum (XXH3) over the checksums, as 8 little-endian bytes each, of the header with zeros in
/// the digest's place, and of each tensor's bytes in the file's order.
class safetensors_file {
public:
  /// Errors: io_error; corrupt, with what is wrong and what would be right, also where the digest is another one. A
  /// file without a digest, as others write it, is checked as far as that goes.
  static caf::expected<safetensors_file> read(const std::filesystem::path& file);

  /// In the file's order. Their bytes are good as long as this is.
  const std::vector<stored_tensor>& tensors() const { return tensors_; }
  /// Null: there is none.
  const stored_tensor* find(std::string_view name) const;
  const tensor_metadata& metadata() const { return metadata_; }
  /// What was taken of the tensors so far means nothing. Errors: io_error, as file_bytes has it.
  caf::error damage() const { return content_.damage(); }

private:
  explicit safetensors_file(file_bytes content) : content_(std::move(content)) {}

  file_bytes content_;
  std::vector<stored_tensor> tensors_;
  tensor_metadata metadata_;
};

/// Writes such a file, with a digest, as `write_durably` does; tensors of larger elements come first, so that each is
/// aligned. Errors: io_error; invalid_argument for an unknown type, bytes that do not fit the shape, a name that is
/// twice there or not allowed, and for metadata with a digest.
caf::error write_safetensors(const std::filesystem::path& file, std::vector<stored_tensor> tensors,
                             const tensor_metadata& metadata = {});

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
