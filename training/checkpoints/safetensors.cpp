#include "training/checkpoints/safetensors.hpp"

#include "messages/errc.hpp"
#include "runtime/text/utf8.hpp"
#include "training/checkpoints/durable_file.hpp"
#include "training/checkpoints/tensor_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <set>

namespace ringmaster::training {

static_assert(std::endian::native == std::endian::little, "tensors' bytes are written as they lie in memory");

namespace {

namespace fs = std::filesystem;

constexpr size_t length_bytes = 8;

caf::error wrong_file(const fs::path& file, const std::string& sentence) {
  return malformed(fmt::format("{}: {}", file.string(), sentence));
}

uint64_t little_endian(std::span<const std::byte> bytes) {
  uint64_t result = 0;
  for (size_t i = length_bytes; i-- > 0;)
    result = result << 8 | std::to_integer<uint64_t>(bytes[i]);
  return result;
}

caf::expected<std::string_view> header_in(const fs::path& file, std::span<const std::byte> bytes) {
  if (bytes.size() < length_bytes)
    return wrong_file(file, fmt::format("it has {} bytes, and must begin with {} that say how long its header is",
                                        bytes.size(), length_bytes));
  const auto length = little_endian(bytes);
  if (length > std::min<uint64_t>(header_bytes_max, bytes.size() - length_bytes))
    return wrong_file(file,
                      fmt::format("its header must have {} bytes, and the file ends after {}", length, bytes.size()));
  return std::string_view{reinterpret_cast<const char*>(bytes.data()) + length_bytes, length};
}

/// Whether the digest, where there is one, is that of the bytes.
caf::error check_digest(const fs::path& file, std::string_view header, const tensor_header& said,
                        std::span<const stored_tensor> tensors) {
  if (!said.digest_at)
    return caf::none;
  std::string blank{header};
  blank.replace(*said.digest_at, digest_letters, digest_letters, '0');
  const auto found = digest_of(blank, tensors), wanted = std::string{header.substr(*said.digest_at, digest_letters)};
  if (found == wanted)
    return caf::none;
  return wrong_file(file, fmt::format("its bytes are not those that were written: their digest must be {}, and is {}",
                                      wanted, found));
}

caf::error check_tensors(std::span<const stored_tensor> tensors) {
  std::set<std::string_view> names;
  for (auto& tensor : tensors) {
    if (tensor.name == metadata_name || !is_utf8(tensor.name) || !names.insert(tensor.name).second)
      return invalid(fmt::format("a tensor cannot be called \"{}\": its name must be UTF-8, its own, and not {}",
                                 as_utf8(tensor.name), metadata_name));
    const auto bytes = bytes_of(tensor.type, tensor.shape);
    if (!bytes)
      return invalid(fmt::format("tensor {}: its type {} is not known, or its shape is too large", tensor.name,
                                 tensor.type));
    if (*bytes != tensor.bytes.size())
      return invalid(fmt::format("tensor {}: its shape has {} bytes of {}, and there are {}", tensor.name, *bytes,
                                 tensor.type, tensor.bytes.size()));
  }
  return caf::none;
}

} // namespace

caf::expected<safetensors_file> safetensors_file::read(const fs::path& file) {
  auto content = file_bytes::of(file);
  if (!content)
    return std::move(content.error());
  safetensors_file result{std::move(*content)};
  const auto bytes = result.content_.bytes();
  auto header = header_in(file, bytes);
  if (!header)
    return std::move(header.error());
  const auto data = bytes.subspan(length_bytes + header->size());
  auto said = parse_tensor_header(*header, data.size());
  if (!said)
    return wrong_file(file, render(said.error()));
  for (auto& entry : said->entries) {
    entry.tensor.bytes = data.subspan(entry.begin, entry.end - entry.begin);
    result.tensors_.push_back(std::move(entry.tensor));
  }
  if (auto problem = check_digest(file, *header, *said, result.tensors_))
    return problem;
  if (auto problem = result.damage())
    return problem;
  result.metadata_ = std::move(said->metadata);
  return result;
}

const stored_tensor* safetensors_file::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors_, name, &stored_tensor::name);
  return found == tensors_.end() ? nullptr : &*found;
}

caf::error write_safetensors(const fs::path& file, std::vector<stored_tensor> tensors,
                             const tensor_metadata& metadata) {
  if (auto problem = check_tensors(tensors))
    return problem;
  if (metadata.contains(digest_key))
    return invalid(fmt::format("the metadata has {} already, which is what is written there", digest_key));
  std::ranges::stable_sort(tensors, std::ranges::greater{}, [](auto& x) { return *bytes_of(x.type, {}); });
  auto header = tensor_header_text(tensors, metadata);
  if (header.size() > header_bytes_max)
    return invalid(fmt::format("{}: its header would have {} bytes, and may have {}", file.string(), header.size(),
                               header_bytes_max));
  header.replace(digest_place(header), digest_letters, digest_of(header, tensors));
  const std::array<uint64_t, 1> length{header.size()};
  std::vector<std::span<const std::byte>> pieces{std::as_bytes(std::span{length}), std::as_bytes(std::span{header})};
  for (auto& tensor : tensors)
    pieces.push_back(tensor.bytes);
  return write_durably(file, pieces);
}

} // namespace ringmaster::training
