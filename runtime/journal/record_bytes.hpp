#pragma once

#include "messages/journal.pb.h"

#include <cstdint>
#include <span>
#include <string>

namespace ringmaster {

/// The stored form of a record: equal content has equal bytes. Text that is not UTF-8 (an error message of the system
/// in another encoding) is repaired, since protobuf would write it and then refuse to read it.
std::string record_bytes(const proto::Record& record);

/// FNV-1a (64 bits) over each record's size and bytes. It ignores nothing: equal digests mean the same history with the
/// same times.
class history_digest {
public:
  void add(const proto::Record& record);
  uint64_t value() const noexcept { return value_; }

private:
  void add_byte(uint8_t byte) noexcept { value_ = (value_ ^ byte) * 0x100000001B3ull; }

  uint64_t value_ = 0xCBF29CE484222325ull;
};

uint64_t digest_of(std::span<const proto::Record> records);

} // namespace ringmaster
