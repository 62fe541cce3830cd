#include "messages/message_json.hpp"

#include "messages/collective_kind.hpp"

#include <google/protobuf/util/json_util.h>

#include <cctype>
#include <string_view>

namespace ringmaster {
namespace {

/// "minMemAddr" -> "min_mem_addr"
void append_snake_case(std::string& to, std::string_view name) {
  for (auto c : name) {
    if (std::isupper(static_cast<unsigned char>(c)) != 0) {
      to += '_';
      c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    to += c;
  }
}

/// Where the string that starts at `first` ends: at its closing quote.
size_t end_of_string(std::string_view json, size_t first) {
  for (auto i = first + 1; i < json.size(); ++i)
    if (json[i] == '\\')
      ++i;
    else if (json[i] == '"')
      return i;
  return json.size() - 1;
}

/// Where the value that starts at `first` ends: at its last character.
size_t end_of_value(std::string_view json, size_t first) {
  size_t depth = 0;
  for (auto i = first; i < json.size(); ++i) {
    if (json[i] == '"')
      i = end_of_string(json, i);
    else if (json[i] == '[' || json[i] == '{')
      ++depth;
    else if (json[i] == ']' || json[i] == '}')
      --depth;
    const bool is_last = i + 1 == json.size() || json[i + 1] == ',' || json[i + 1] == ']' || json[i + 1] == '}';
    if (depth == 0 && is_last)
      return i;
  }
  return json.size() - 1;
}

/// A name with its quotes, of a field of proto::Collective.
bool is_of_reduction(std::string_view name) {
  return name == "\"op\"" || name == "\"user_op\"" || name == "\"factors\"";
}

/// `value`: of a field "kind", and what follows. Fields of this name that are no CollectiveKind have no reduction to
/// leave out.
bool kind_reduces(std::string_view value) {
  proto::CollectiveKind kind{};
  const auto text = value.substr(0, end_of_value(value, 0) + 1);
  return text.size() < 2 || !proto::CollectiveKind_Parse(std::string{text.substr(1, text.size() - 2)}, &kind)
         || reduces(kind);
}

} // namespace

std::string json_of_message(const google::protobuf::Message& x) {
  google::protobuf::util::JsonPrintOptions how;
  how.preserve_proto_field_names = true;
  how.always_print_primitive_fields = true;
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(x, &json, how).ok() || json.empty())
    return "{}";
  bool has_reduction = true; // the collective at hand, whose kind is its first field
  std::string result;
  result.reserve(json.size() + json.size() / 8);
  for (size_t i = 0; i < json.size(); ++i) {
    if (json[i] != '"') {
      result += json[i];
      continue;
    }
    auto end = end_of_string(json, i);
    auto text = std::string_view{json}.substr(i, end - i + 1);
    const bool is_name = end + 1 < json.size() && json[end + 1] == ':';
    if (is_name && text == "\"kind\"")
      has_reduction = kind_reduces(std::string_view{json}.substr(end + 2));
    if (is_name && !has_reduction && is_of_reduction(text)) {
      end = end_of_value(json, end + 2);
      if (end + 1 < json.size() && json[end + 1] == ',')
        ++end;
      else if (result.back() == ',')
        result.pop_back();
    } else if (is_name)
      append_snake_case(result, text);
    else
      result += text;
    i = end;
  }
  return result;
}

} // namespace ringmaster
