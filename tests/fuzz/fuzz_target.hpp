#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster::fuzz {

/// One way by which bytes of others come in. `run` hands them to it as the programs do, and returns, whatever they are:
/// a crash, a broken invariant, an exception, a leak, and time or memory out of proportion are faults of ours. It keeps
/// nothing, so that the same bytes do the same again.
///
/// Each *_target.cpp defines one. With the preset `fuzz`, each becomes a program with libFuzzer's main; in all others,
/// corpora_test.cpp runs the corpora of all of them.
struct fuzz_target {
  fuzz_target(std::string_view name, void (*run)(std::string_view bytes));
  fuzz_target(const fuzz_target&) = delete;

  const std::string_view name; ///< Of the directory of its corpus and of its program, fuzz_NAME.
  void (*const run)(std::string_view bytes);

  /// All of this program.
  static const std::vector<const fuzz_target*>& all();
};

/// Takes parts off the front of an input.
class input_parts {
public:
  explicit input_parts(std::string_view bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  /// 0 if there is none.
  uint8_t byte();
  /// Two bytes with its length, little-endian, and then the part, or as much of it as there is.
  std::string_view part();
  std::string_view rest() const { return rest_; }

private:
  std::string_view rest_;
};

std::span<const std::byte> as_bytes(std::string_view bytes);

/// A file in memory, for code that takes a path.
class memory_file {
public:
  explicit memory_file(std::string_view content);
  memory_file(const memory_file&) = delete;
  ~memory_file();

  std::filesystem::path path() const;

private:
  int descriptor_;
};

} // namespace ringmaster::fuzz
