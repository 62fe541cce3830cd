#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace ringmaster {

/// The message as one line of JSON, with all of its fields. Names are snake_case, also those of gpu_sim.proto, whose
/// own are camelCase; 64-bit integers are strings, as protobuf has them. "{}" where a text in it is not UTF-8. The
/// fields of a collective's reduction are left out if its kind does not reduce.
std::string json_of_message(const google::protobuf::Message& x);

} // namespace ringmaster
