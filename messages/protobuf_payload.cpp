#include "messages/protobuf_payload.hpp"

namespace ringmaster {

using google::protobuf::Message;

caf::error save_value(caf::serializer& sink, const Message& x) {
  return inspect_protobuf(sink, const_cast<Message&>(x));
}

caf::error load_value(caf::deserializer& source, Message& x) {
  return inspect_protobuf(source, x);
}

std::string value_text(const Message& x) {
  std::string result;
  caf::detail::stringification_inspector f{result};
  inspect_protobuf(f, const_cast<Message&>(x));
  return result;
}

} // namespace ringmaster
