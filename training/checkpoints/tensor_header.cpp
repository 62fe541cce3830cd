#include "training/checkpoints/tensor_header.hpp"

#include "messages/errc.hpp"
#include "runtime/links/link_checksum.hpp"
#include "runtime/text/json/json_place.hpp"
#include "runtime/text/json/json_writer.hpp"

#include <fmt/format.h>

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

caf::expected<std::vector<uint64_t>> numbers_of(const json_place& place) {
  auto list = place.list();
  if (!list)
    return std::move(list.error());
  std::vector<uint64_t> result;
  for (auto& each : *list) {
    auto number = each.number(json_place::exact_max);
    if (!number)
      return std::move(number.error());
    result.push_back(*number);
  }
  return result;
}

caf::expected<tensor_header::entry> read_entry(const std::string& name, const json_place& place) {
  auto type = place.at("dtype").text();
  if (!type)
    return std::move(type.error());
  auto shape = numbers_of(place.at("shape"));
  if (!shape)
    return std::move(shape.error());
  auto offsets = numbers_of(place.at("data_offsets"));
  if (!offsets)
    return std::move(offsets.error());
  const auto bytes = bytes_of(*type, *shape);
  if (!bytes)
    return place.refused(fmt::format("tensor {}: its type {} is not known, or its shape is too large", name, *type));
  if (offsets->size() != 2 || offsets->back() < offsets->front() || offsets->back() - offsets->front() != *bytes)
    return place.at("data_offsets").wrong(fmt::format("where the tensor's {} bytes begin and end", *bytes));
  return tensor_header::entry{{name, *type, *shape}, offsets->front(), offsets->back()};
}

caf::error read_metadata(const json_place& place, const json_value& value, tensor_header& target) {
  if (auto problem = value.what == json_value::type::object ? caf::error{} : place.wrong("an object with texts"))
    return problem;
  for (size_t i = 0; i < value.keys.size(); ++i) {
    const auto& name = value.keys[i].name;
    auto text = place.at(name).text();
    if (!text)
      return std::move(text.error());
    if (name == digest_key) {
      if (value.entries[i].end - value.entries[i].offset != digest_letters + 2)
        return place.at(name).wrong(fmt::format("{} hexadecimal digits", digest_letters));
      target.digest_at = value.entries[i].offset + 1;
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
    if (side > json_place::exact_max / result)
      return std::nullopt;
    result *= side;
  }
  return result;
}

caf::expected<tensor_header> parse_tensor_header(std::string_view header, uint64_t data_bytes) {
  auto json = parse_json(header);
  if (!json)
    return malformed("header, " + render(json.error()));
  const json_place all{"the header", header, *json};
  tensor_header result;
  auto read = [&](size_t i) -> caf::error {
    const auto& name = json->keys[i].name;
    const json_place place{name, header, json->entries[i]};
    if (name == metadata_name)
      return read_metadata(place, json->entries[i], result);
    auto entry = read_entry(name, place);
    if (!entry)
      return std::move(entry.error());
    result.entries.push_back(std::move(*entry));
    return caf::none;
  };
  auto problem = json->what == json_value::type::object ? caf::error{} : all.wrong("an object");
  for (size_t i = 0; !problem && i < json->keys.size(); ++i)
    problem = read(i);
  if (problem)
    return malformed("header, " + render(problem));
  std::ranges::stable_sort(result.entries, {}, [](auto& x) { return std::pair{x.begin, x.end}; });
  if (auto gap = check_cover(result.entries, data_bytes))
    return gap;
  return result;
}

std::string tensor_header_text(std::span<const stored_tensor> tensors, const tensor_metadata& metadata) {
  json_writer json;
  json.object().object(metadata_name).member(digest_key, std::string(digest_letters, '0'));
  for (auto& [name, text] : metadata)
    json.member(name, text);
  json.end();
  uint64_t offset = 0;
  for (auto& tensor : tensors) {
    json.object(tensor.name).member("dtype", tensor.type).list("shape");
    for (auto side : tensor.shape)
      json.value(side);
    json.end().list("data_offsets").value(offset).value(offset + tensor.bytes.size()).end().end();
    offset += tensor.bytes.size();
  }
  auto text = json.end().take();
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
