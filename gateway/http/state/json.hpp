#pragma once

#include "messages/ids.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

namespace ringmaster::gateway {

// How the HTTP interface writes values: gateway/http/openapi.json has the fields.

/// Keeps the order of fields, which people read.
using json = nlohmann::ordered_json;

/// "0x4", as the command line prints it.
inline std::string json_id(device_id id) {
  return fmt::format("{:#x}", id.value);
}

/// Milliseconds with a fraction. 0 stays 0, which stands for "never".
inline double json_ms(uint64_t ns) {
  return static_cast<double>(ns / 1000) / 1000;
}

/// The text of one line. Bytes that are not UTF-8 become U+FFFD.
inline std::string text_of(const json& x) {
  return x.dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace ringmaster::gateway
