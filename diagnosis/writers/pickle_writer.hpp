#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace ringmaster::diagnosis {

/// Writes a value as a pickle of protocol 2, which Python 2.3 and later and PyTorch read. Equal texts are written once.
/// Between open_map and close_map, keys and values alternate.
class pickle_writer {
public:
  pickle_writer() : bytes_("\x80\x02", 2) {}

  void none() { bytes_ += 'N'; }
  void boolean(bool x) { bytes_ += x ? '\x88' : '\x89'; }
  void integer(int64_t x);
  void text(std::string_view x);
  void open_list() { bytes_ += "]("; }
  void close_list() { bytes_ += 'e'; }
  void open_map() { bytes_ += "}("; }
  void close_map() { bytes_ += 'u'; }
  /// A tuple of two texts.
  void pair(std::string_view first, std::string_view second);

  /// Keeps the value that was written last, so that it can be written again as a reference; returns its slot.
  uint32_t remember();
  /// Writes the value of a slot again.
  void recall(uint32_t slot) { refer('h', 'j', slot); }

  /// The finished pickle.
  std::string finish() && { return std::move(bytes_ += '.'); }

private:
  void append(const void* data, size_t size) { bytes_.append(static_cast<const char*>(data), size); }

  void refer(char short_form, char long_form, uint32_t slot);

  std::string bytes_;
  uint32_t next_slot_ = 0;
  std::unordered_map<std::string, uint32_t> memo_;
};

} // namespace ringmaster::diagnosis
