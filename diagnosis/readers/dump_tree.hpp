#pragma once

#include <caf/expected.hpp>

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster::diagnosis {

/// A value of a dump. Lists and maps share their entries, as pickles do, so copies are cheap.
struct dump_value {
  enum class kind : uint8_t { none, boolean, integer, real, text, list, map };

  kind type = kind::none;
  uint32_t node = 0; ///< Of a text, list or map: its number in the tree.
  union {
    int64_t integer = 0;
    double real;
  };

  static dump_value of(bool x) {
    auto y = of(int64_t{x});
    y.type = kind::boolean;
    return y;
  }
  static dump_value of(int64_t x) {
    dump_value y;
    y.type = kind::integer;
    y.integer = x;
    return y;
  }
  static dump_value of(double x) {
    dump_value y;
    y.type = kind::real;
    y.real = x;
    return y;
  }
};

/// The values of one dump, whatever its syntax. A list may contain itself if the dump says so; readers descend to a
/// fixed depth. Texts are views of the dump's bytes, which must outlive the tree.
class dump_tree {
public:
  /// Makes room for the values of a document of that size.
  void reserve(size_t document_bytes) { cells_.reserve(document_bytes / 3); }
  dump_value add_text(std::string_view text);
  /// A text that the dump does not have as it is.
  dump_value add_own_text(std::string text);
  dump_value add_container(dump_value::kind type);
  /// Adds entries to a list, or keys and values, alternating, to a map.
  void append(dump_value container, std::span<const dump_value> entries);

  std::string_view text(dump_value x) const { return texts_[x.node].text; }
  /// The number that `tag` gave the text, or 0: readers look up names once for each text, not for each use.
  uint32_t& tag(dump_value x) { return texts_[x.node].tag; }
  /// Of a list: its entries. Of a map: keys and values, alternating.
  std::span<const dump_value> entries(dump_value x) const {
    auto& node = containers_[x.node];
    return {cells_.data() + node.begin, node.count};
  }
  /// The value of a map's key; none if the map has no such key, or this is no map.
  std::optional<dump_value> at(dump_value map, std::string_view key) const;
  size_t containers() const noexcept { return containers_.size(); }

private:
  struct text_node {
    std::string_view text;
    uint32_t tag = 0;
  };
  struct container_node {
    size_t begin = 0;
    uint32_t count = 0, capacity = 0;
  };

  std::vector<text_node> texts_;
  std::vector<container_node> containers_;
  std::vector<dump_value> cells_;
  std::deque<std::string> own_texts_;
};

/// A dump and its outermost value.
struct parsed_dump {
  dump_tree tree;
  dump_value root;
  size_t bytes = 0; ///< Of the document.
};

/// Reads a pickle of protocol 0 to 5 that consists of plain values: none, booleans, numbers, texts, lists, tuples (as
/// lists) and dictionaries. Executes nothing. Errors: corrupt, with the byte offset and what would be right; in
/// particular for every opcode that names, calls or builds an object.
caf::expected<parsed_dump> parse_pickle(std::string_view bytes);

/// The same of a JSON document. Errors: corrupt, with line and column.
caf::expected<parsed_dump> parse_json_dump(std::string_view text);

} // namespace ringmaster::diagnosis
