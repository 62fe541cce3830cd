#pragma once

#include "gateway/http/state/json.hpp"
#include "messages/journal.pb.h"

#include <string_view>

namespace ringmaster::gateway {

/// The fields of `Record` in openapi.json.
json record_json(uint64_t index, const proto::Record& record);

/// The device that the record is about; 0: none, or several.
device_id device_of(const proto::Record& record);

/// "plain", "good", "warning", "bad".
std::string_view tone_name(const proto::Record& record);

} // namespace ringmaster::gateway
