#pragma once

#include "gateway/http/state/json.hpp"

#include <fstream>
#include <string>
#include <vector>

namespace ringmaster::test {

using gateway::json;

/// A document of tests/gateway/data, which openapi.json names as an example.
inline json example(const std::string& name) {
  std::ifstream file{std::string{RINGMASTER_SOURCE_DIR} + "/tests/gateway/data/" + name};
  return json::parse(file);
}

/// Fields and types in which a document differs from an example, with their places. Lists are compared by the elements
/// that both have first; null stands for any type.
inline void compare_shapes(const json& x, const json& expected, const std::string& place,
                           std::vector<std::string>& found) {
  const auto kind = [](const json& y) { return y.is_number() ? "number" : std::string{y.type_name()}; };
  if (x.is_null() || expected.is_null() || place.ends_with(".record")) // its fields depend on the event
    return;
  if (kind(x) != kind(expected)) {
    found.push_back(place + ": " + kind(x) + " in place of " + kind(expected));
  } else if (x.is_array()) {
    if (!x.empty() && !expected.empty())
      compare_shapes(x[0], expected[0], place + "[0]", found);
  } else if (x.is_object()) {
    for (auto& [name, value] : expected.items())
      if (x.contains(name))
        compare_shapes(x[name], value, place + "." + name, found);
      else
        found.push_back(place + "." + name + " is missing");
    for (auto& [name, value] : x.items())
      if (!expected.contains(name))
        found.push_back(place + "." + name + " is not documented");
  }
}

/// Empty if the document has the fields of the example.
inline std::string differences(const json& x, const std::string& file) {
  std::vector<std::string> found;
  compare_shapes(x, example(file), file, found);
  std::string result;
  for (auto& each : found)
    result += each + "\n";
  return result;
}

} // namespace ringmaster::test
