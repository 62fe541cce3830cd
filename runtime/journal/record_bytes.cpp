#include "runtime/journal/record_bytes.hpp"

#include "runtime/invariants/ensure.hpp"
#include "runtime/text/utf8.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <vector>

namespace ringmaster {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Calls `visit(message, field, index, text)` for every string in `message`; the index of a field that is not repeated
// is -1. Maps have no text in this schema.
template <class Visitor>
void for_each_text(const Message& message, Visitor visit) {
  auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (auto* field : fields) {
    if (field->is_map())
      continue;
    auto count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      auto index = field->is_repeated() ? i : -1;
      std::string scratch;
      if (field->type() == FieldDescriptor::TYPE_STRING)
        visit(message, field, index,
              index < 0 ? reflection->GetStringReference(message, field, &scratch)
                        : reflection->GetRepeatedStringReference(message, field, index, &scratch));
      else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
        for_each_text(index < 0 ? reflection->GetMessage(message, field)
                                : reflection->GetRepeatedMessage(message, field, index),
                      visit);
    }
  }
}

bool all_utf8(const Message& message) {
  auto valid = true;
  for_each_text(message, [&](auto&, auto*, int, const std::string& text) { valid = valid && is_utf8(text); });
  return valid;
}

void repair(Message& message) {
  for_each_text(message, [](const Message& part, const FieldDescriptor* field, int index, const std::string& text) {
    auto& writable = const_cast<Message&>(part); // a part of `message`, which is not const
    if (index < 0)
      part.GetReflection()->SetString(&writable, field, as_utf8(text));
    else
      part.GetReflection()->SetRepeatedString(&writable, field, index, as_utf8(text));
  });
}

} // namespace

std::string record_bytes(const proto::Record& record) {
  if (!all_utf8(record)) {
    auto repaired = record;
    repair(repaired);
    return record_bytes(repaired);
  }
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream sink{&bytes};
    google::protobuf::io::CodedOutputStream out{&sink};
    out.SetSerializationDeterministic(true);
    ensure(record.SerializeToCodedStream(&out), "a record fits into a protobuf message");
  }
  return bytes;
}

void history_digest::add(const proto::Record& record) {
  auto bytes = record_bytes(record);
  for (auto size = static_cast<uint64_t>(bytes.size()), i = uint64_t{0}; i < 8; ++i)
    add_byte(static_cast<uint8_t>(size >> (8 * i)));
  for (auto byte : bytes)
    add_byte(static_cast<uint8_t>(byte));
}

uint64_t digest_of(std::span<const proto::Record> records) {
  history_digest digest;
  for (auto& record : records)
    digest.add(record);
  return digest.value();
}

} // namespace ringmaster
