#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace ringmaster {

/// The message as one line of JSON, with all of its fields. Names are snake_case, also those of gpu_sim.proto, which
/// are camelCase there; 64-bit integers are strings, as protobuf prints them. A collective whose kind does not reduce
/// has no fields of a reduction. "{}" if a text of the message is not UTF-8.
std::string json_of_message(const google::protobuf::Message& x);

} // namespace ringmaster
