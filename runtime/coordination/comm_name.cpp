#include "runtime/coordination/comm_name.hpp"

#include "runtime/text/utf8.hpp"

namespace ringmaster {

namespace {

/// A continuation byte of a UTF-8 character.
bool is_behind_first(char x) {
  return (static_cast<unsigned char>(x) & 0xC0) == 0x80;
}

} // namespace

bool is_comm_name(const std::string& text) {
  return text.size() <= comm_name_bytes_max && !has_control_characters(text);
}

std::string as_comm_name(std::string text) {
  std::erase_if(text, is_control);
  if (text.size() <= comm_name_bytes_max)
    return text;
  auto end = comm_name_bytes_max;
  while (end > 0 && is_behind_first(text[end]))
    --end;
  text.resize(end);
  return text;
}

} // namespace ringmaster
