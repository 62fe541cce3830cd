#include "messages/message_json.hpp"

#include "messages/collective_kind.hpp"

#include <google/protobuf/util/json_util.h>
#include <nlohmann/json.hpp>

#include <cctype>

namespace ringmaster {
namespace {

using json = nlohmann::ordered_json; // objects keep the order of their keys

/// "minMemAddr" -> "min_mem_addr"
std::string snake_case(const std::string& name) {
  std::string result;
  for (const unsigned char c : name) {
    if (std::isupper(c) != 0)
      result += '_';
    result += static_cast<char>(std::tolower(c));
  }
  return result;
}

/// Whether an object is a collective of a kind that does not reduce. Other fields named "kind" are no CollectiveKind.
bool has_no_reduction(const json& object) {
  const auto kind = object.find("kind");
  proto::CollectiveKind value{};
  return kind != object.end() && kind->is_string()
         && proto::CollectiveKind_Parse(kind->get_ref<const std::string&>(), &value) && !reduces(value);
}

/// The same value with our names, and without the fields of a reduction where there is none.
json readable(const json& x) {
  if (x.is_array()) {
    auto result = json::array();
    for (const auto& each : x)
      result.push_back(readable(each));
    return result;
  }
  if (!x.is_object())
    return x;
  const bool skips_reduction = has_no_reduction(x);
  auto result = json::object();
  for (const auto& [name, value] : x.items())
    if (!skips_reduction || (name != "op" && name != "user_op" && name != "factors"))
      result[snake_case(name)] = readable(value);
  return result;
}

} // namespace

std::string json_of_message(const google::protobuf::Message& x) {
  google::protobuf::util::JsonPrintOptions how;
  how.preserve_proto_field_names = true;
  how.always_print_primitive_fields = true;
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(x, &text, how).ok() || text.empty())
    return "{}";
  return readable(json::parse(text)).dump();
}

} // namespace ringmaster
