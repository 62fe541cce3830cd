#include "messages/message_json.hpp"

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

} // namespace

std::string json_of_message(const google::protobuf::Message& x) {
  google::protobuf::util::JsonPrintOptions how;
  how.preserve_proto_field_names = true;
  how.always_print_primitive_fields = true;
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(x, &json, how).ok() || json.empty())
    return "{}";
  std::string result;
  result.reserve(json.size() + json.size() / 8);
  for (size_t i = 0; i < json.size(); ++i) {
    if (json[i] != '"') {
      result += json[i];
      continue;
    }
    auto end = end_of_string(json, i);
    auto text = std::string_view{json}.substr(i, end - i + 1);
    if (end + 1 < json.size() && json[end + 1] == ':')
      append_snake_case(result, text);
    else
      result += text;
    i = end;
  }
  return result;
}

} // namespace ringmaster
