#include "training/checkpoints/safetensors.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/links/link_checksum.hpp"
#include "runtime/text/json_field.hpp"
#include "runtime/text/utf8.hpp"
#include "training/checkpoints/durable_file.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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
  TRY(content, file_bytes::of(file));
  safetensors_file result{std::move(*content)};
  const auto bytes = result.content_.bytes();
  TRY(header, header_in(file, bytes));
  const auto data = bytes.subspan(length_bytes + header->size());
  auto said = parse_tensor_header(*header, data.size());
  if (!said)
    return wrong_file(file, render(said.error()));
  for (auto& entry : said->entries) {
    entry.tensor.bytes = data.subspan(entry.begin, entry.end - entry.begin);
    result.tensors_.push_back(std::move(entry.tensor));
  }
  RETURN_ERROR(check_digest(file, *header, *said, result.tensors_));
  RETURN_ERROR(result.damage());
  result.metadata_ = std::move(said->metadata);
  return result;
}

const stored_tensor* safetensors_file::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors_, name, &stored_tensor::name);
  return found == tensors_.end() ? nullptr : &*found;
}

caf::error write_safetensors(const fs::path& file, std::vector<stored_tensor> tensors,
                             const tensor_metadata& metadata) {
  RETURN_ERROR(check_tensors(tensors));
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

namespace {

constexpr stored_type known_types[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
                                       {"U16", 2},  {"I16", 2}, {"F16", 2}, {"BF16", 2},    {"U32", 4},
                                       {"I32", 4},  {"F32", 4}, {"U64", 8}, {"I64", 8},     {"F64", 8}};

caf::expected<std::vector<uint64_t>> numbers_of(const json_field& field) {
  TRY(list, field.list());
  std::vector<uint64_t> result;
  for (auto& each : *list) {
    TRY(number, each.number(json_field::exact_max));
    result.push_back(*number);
  }
  return result;
}

caf::expected<tensor_header::entry> read_entry(const std::string& name, const json_field& field) {
  TRY(type, field.at("dtype").text());
  TRY(shape, numbers_of(field.at("shape")));
  TRY(offsets, numbers_of(field.at("data_offsets")));
  const auto bytes = bytes_of(*type, *shape);
  if (!bytes)
    return invalid(fmt::format("tensor {}: its type {} is not known, or its shape is too large", name, *type));
  if (offsets->size() != 2 || offsets->back() < offsets->front() || offsets->back() - offsets->front() != *bytes)
    return field.at("data_offsets").wrong(fmt::format("where the tensor's {} bytes begin and end", *bytes));
  return tensor_header::entry{{name, *type, *shape}, offsets->front(), offsets->back()};
}

caf::error read_metadata(const json_field& metadata, std::string_view header, tensor_header& target) {
  auto members = metadata.members();
  if (!members)
    return metadata.wrong("an object with texts");
  for (const auto& [name, value] : *members) {
    TRY(text, value.text());
    if (name == digest_key) {
      target.digest_at = header.find('"' + *text + '"', header.find(digest_key)) + 1;
      if (text->size() != digest_letters || *target.digest_at == 0)
        return value.wrong(fmt::format("{} hexadecimal digits", digest_letters));
    }
    target.metadata.emplace(name, std::move(*text));
  }
  return caf::none;
}

caf::error check_cover(const std::vector<tensor_header::entry>& entries, uint64_t data_bytes) {
  uint64_t end = 0;
  for (auto& each : entries) {
    if (each.begin != end)
      return malformed(fmt::format("tensor {} must begin at byte {} of the data, where the one before ends, and begins "
                                   "at {}",
                                   each.tensor.name, end, each.begin));
    end = each.end;
  }
  if (end != data_bytes)
    return malformed(fmt::format("the tensors have {} bytes of data together, and the file has {}", end, data_bytes));
  return caf::none;
}

} // namespace

std::span<const stored_type> stored_types() {
  return known_types;
}

std::optional<uint64_t> bytes_of(std::string_view type, std::span<const uint64_t> shape) {
  const auto known = std::ranges::find(known_types, type, &stored_type::name);
  if (known == std::end(known_types))
    return std::nullopt;
  if (std::ranges::find(shape, uint64_t{0}) != shape.end())
    return 0;
  uint64_t result = known->bytes;
  for (auto side : shape) {
    if (side > json_field::exact_max / result)
      return std::nullopt;
    result *= side;
  }
  return result;
}

caf::expected<tensor_header> parse_tensor_header(std::string_view header, uint64_t data_bytes) {
  auto json = parse_json(header);
  if (!json)
    return malformed("header, " + render(json.error()));
  auto members = json_field{"the header", *json}.members();
  if (!members)
    return malformed("header, " + render(members.error()));
  tensor_header result;
  auto read = [&](const std::string& name, const json_field& field) -> caf::error {
    if (name == metadata_name)
      return read_metadata(field.named(name), header, result);
    TRY(entry, read_entry(name, field.named(name)));
    result.entries.push_back(std::move(*entry));
    return caf::none;
  };
  for (const auto& [name, field] : *members)
    if (auto problem = read(name, field))
      return malformed("header, " + render(problem));
  std::ranges::stable_sort(result.entries, {}, [](auto& x) { return std::pair{x.begin, x.end}; });
  if (auto gap = check_cover(result.entries, data_bytes))
    return gap;
  return result;
}

std::string tensor_header_text(std::span<const stored_tensor> tensors, const tensor_metadata& metadata) {
  json_value json;
  auto& about = json[metadata_name] = {{digest_key, std::string(digest_letters, '0')}};
  for (auto& [name, text] : metadata)
    about[name] = text;
  uint64_t offset = 0;
  for (auto& tensor : tensors) {
    const auto end = offset + tensor.bytes.size();
    json[tensor.name] = {{"dtype", tensor.type}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  auto text = json_text(json);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

size_t digest_place(std::string_view header) {
  return header.find(std::string(digest_letters, '0'), header.find(digest_key)); // the first of the metadata
}

std::string digest_of(std::string_view header, std::span<const stored_tensor> tensors) {
  std::vector<std::byte> sums;
  auto add = [&](std::span<const std::byte> bytes) {
    const auto sum = link_checksum(bytes);
    for (int i = 0; i < 8; ++i)
      sums.push_back(static_cast<std::byte>(sum >> 8 * i));
  };
  add(std::as_bytes(std::span{header}));
  for (auto& tensor : tensors)
    add(tensor.bytes);
  return fmt::format("{:016x}", link_checksum(sums));
}

} // namespace ringmaster::training
