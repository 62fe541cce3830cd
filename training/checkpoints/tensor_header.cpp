#include "training/checkpoints/tensor_header.hpp"

#include "messages/errc.hpp"
#include "runtime/links/link_checksum.hpp"
#include "runtime/text/json_field.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace ringmaster::training {

namespace {

constexpr std::array<stored_type, 15> known_types{{{"BOOL", 1},
                                                   {"U8", 1},
                                                   {"I8", 1},
                                                   {"F8_E5M2", 1},
                                                   {"F8_E4M3", 1},
                                                   {"U16", 2},
                                                   {"I16", 2},
                                                   {"F16", 2},
                                                   {"BF16", 2},
                                                   {"U32", 4},
                                                   {"I32", 4},
                                                   {"F32", 4},
                                                   {"U64", 8},
                                                   {"I64", 8},
                                                   {"F64", 8}}};

caf::expected<std::vector<uint64_t>> numbers_of(const json_field& field) {
  auto list = field.list();
  if (!list)
    return std::move(list.error());
  std::vector<uint64_t> result;
  for (auto& each : *list) {
    auto number = each.number(json_field::exact_max);
    if (!number)
      return std::move(number.error());
    result.push_back(*number);
  }
  return result;
}

caf::expected<tensor_header::entry> read_entry(const std::string& name, const json_field& field) {
  auto type = field.at("dtype").text();
  if (!type)
    return std::move(type.error());
  auto shape = numbers_of(field.at("shape"));
  if (!shape)
    return std::move(shape.error());
  auto offsets = numbers_of(field.at("data_offsets"));
  if (!offsets)
    return std::move(offsets.error());
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
    auto text = value.text();
    if (!text)
      return std::move(text.error());
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
  if (known == known_types.end())
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
    auto entry = read_entry(name, field.named(name));
    if (!entry)
      return std::move(entry.error());
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
