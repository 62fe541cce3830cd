#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ringmaster::launch {

/// Turns the bytes of one stream, however they are cut, into whole lines that begin with "[NAME] ".
/// A line longer than `max_line_bytes` is cut into several, so that a stream without newlines cannot eat the memory.
class line_prefixer {
public:
  static constexpr size_t max_line_bytes = 64 * 1024;

  explicit line_prefixer(std::string_view name);

  /// The lines that `bytes` completes, each prefixed and ended; what follows the last newline waits for more.
  std::string feed(std::string_view bytes);

  /// The line that has begun and was not ended, as a line; empty if there is none.
  std::string flush();

  /// The last line with something on it, without prefix; empty if there was none.
  const std::string& last_line() const { return last_line_; }

private:
  void complete_line(std::string& lines);

  std::string prefix_;
  std::string begun_;
  std::string last_line_;
};

} // namespace ringmaster::launch
