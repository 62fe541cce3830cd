#include "diagnosis/writers/pickle_writer.hpp"

#include <bit>

namespace ringmaster::diagnosis {

static_assert(std::endian::native == std::endian::little, "numbers of a pickle are little endian");

void pickle_writer::integer(int64_t x) {
  if (x >= 0 && x <= UINT8_MAX) {
    bytes_ += 'K';
    append(&x, 1);
  } else if (x >= 0 && x <= UINT16_MAX) {
    bytes_ += 'M';
    append(&x, 2);
  } else if (x >= INT32_MIN && x <= INT32_MAX) {
    bytes_ += 'J';
    append(&x, 4);
  } else {
    bytes_ += "\x8a\x08"; // LONG1 of 8 bytes
    append(&x, 8);
  }
}

void pickle_writer::refer(char short_form, char long_form, uint32_t slot) {
  const bool is_short = slot <= UINT8_MAX;
  bytes_ += is_short ? short_form : long_form;
  append(&slot, is_short ? 1 : 4);
}

uint32_t pickle_writer::remember() {
  refer('q', 'r', next_slot_);
  return next_slot_++;
}

void pickle_writer::text(std::string_view x) {
  auto [at, added] = memo_.emplace(x, next_slot_);
  if (!added)
    return recall(at->second);
  const auto length = static_cast<uint32_t>(x.size());
  bytes_ += 'X';
  append(&length, 4);
  bytes_ += x;
  remember();
}

void pickle_writer::pair(std::string_view first, std::string_view second) {
  text(first);
  text(second);
  bytes_ += '\x86';
}

} // namespace ringmaster::diagnosis
