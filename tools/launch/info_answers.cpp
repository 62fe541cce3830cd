#include "tools/launch/info_answers.hpp"

#include "runtime/text/json_field.hpp"

#include <nlohmann/json.hpp>

namespace ringmaster::launch {

namespace {

/// A field that lists; empty where the output has none.
std::vector<json_field> list_in(const json_value& document, const char* field) {
  auto found = json_field{"info", document}.at(field).list();
  return found ? std::move(*found) : std::vector<json_field>{};
}

} // namespace

std::set<std::string> missing_nodes_in(const std::string& output) {
  std::set<std::string> result;
  if (const auto document = parse_json(output))
    for (auto& each : list_in(*document, "missing"))
      if (auto name = each.text())
        result.insert(std::move(*name));
  return result;
}

std::optional<reported_loss> loss_in(const std::string& output) {
  const auto document = parse_json(output);
  if (!document)
    return std::nullopt;
  auto text = json_field{"info", *document}.at("lost").text();
  if (!text)
    return std::nullopt;
  return reported_loss{std::move(*text), !list_in(*document, "communicators").empty()};
}

} // namespace ringmaster::launch
