#include "diagnosis/readers/dump_tree.hpp"

#include "messages/errc.hpp"
#include "runtime/text/json_field.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace ringmaster::diagnosis {

dump_value dump_tree::add_text(std::string_view text) {
  dump_value x;
  x.type = dump_value::kind::text;
  x.node = static_cast<uint32_t>(texts_.size());
  texts_.push_back({text});
  return x;
}

dump_value dump_tree::add_own_text(std::string text) {
  return add_text(own_texts_.emplace_back(std::move(text)));
}

dump_value dump_tree::add_container(dump_value::kind type) {
  dump_value x;
  x.type = type;
  x.node = static_cast<uint32_t>(containers_.size());
  containers_.emplace_back();
  return x;
}

void dump_tree::append(dump_value container, std::span<const dump_value> entries) {
  auto& node = containers_[container.node];
  const auto count = node.count + static_cast<uint32_t>(entries.size());
  if (node.count == 0) {
    node.begin = cells_.size();
    node.capacity = 0;
  }
  if (node.begin + node.capacity == cells_.size() && node.count == node.capacity) { // the latest one grows in place
    cells_.insert(cells_.end(), entries.begin(), entries.end());
    node.count = node.capacity = count;
    return;
  }
  if (count > node.capacity) { // it moves to the end, with room for as much again
    const auto begin = cells_.size();
    node.capacity = 2 * count;
    cells_.resize(begin + node.capacity);
    std::copy_n(cells_.begin() + static_cast<ptrdiff_t>(node.begin), node.count,
                cells_.begin() + static_cast<ptrdiff_t>(begin));
    node.begin = begin;
  }
  std::ranges::copy(entries, cells_.begin() + static_cast<ptrdiff_t>(node.begin + node.count));
  node.count = count;
}

std::optional<dump_value> dump_tree::at(dump_value map, std::string_view key) const {
  if (map.type != dump_value::kind::map)
    return {};
  auto all = entries(map);
  for (size_t i = all.size(); i >= 2; i -= 2) // the last of equal keys counts, as in Python
    if (all[i - 2].type == dump_value::kind::text && text(all[i - 2]) == key)
      return all[i - 1];
  return {};
}

namespace {

dump_value value_of(dump_tree& tree, const json_value& x) {
  switch (x.type()) {
    case json_value::value_t::boolean: return dump_value::of(x.get<bool>());
    case json_value::value_t::number_integer:
    case json_value::value_t::number_unsigned: return dump_value::of(x.get<int64_t>());
    case json_value::value_t::number_float: return dump_value::of(x.get<double>());
    case json_value::value_t::string: return tree.add_own_text(x.get<std::string>());
    case json_value::value_t::array: {
      std::vector<dump_value> entries;
      for (auto& each : x)
        entries.push_back(value_of(tree, each)); // parse_json limits the depth
      auto list = tree.add_container(dump_value::kind::list);
      tree.append(list, entries);
      return list;
    }
    case json_value::value_t::object: {
      std::vector<dump_value> entries;
      for (auto& [key, value] : x.items()) {
        entries.push_back(tree.add_own_text(key));
        entries.push_back(value_of(tree, value));
      }
      auto map = tree.add_container(dump_value::kind::map);
      tree.append(map, entries);
      return map;
    }
    default: return {};
  }
}

} // namespace

caf::expected<parsed_dump> parse_json_dump(std::string_view text) {
  auto document = parse_json(text);
  if (!document)
    return malformed(render(document.error()));
  parsed_dump result;
  result.bytes = text.size();
  result.root = value_of(result.tree, *document);
  return result;
}

} // namespace ringmaster::diagnosis
