#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ringmaster::launch {

/// Turns the bytes of one stream, however they are cut, into whole lines that begin with "[NAME] ".
/// A line longer than `max_line_bytes` is cut into several, so that a stream without newlines needs bounded memory.
class line_prefixer {
public:
  static constexpr size_t max_line_bytes = 64 * 1024;

  explicit line_prefixer(std::string_view name);

  /// The lines that `bytes` completes, with prefix and newline. The rest is kept for the next call.
  std::string feed(std::string_view bytes);

  /// The incomplete last line, or empty.
  std::string flush();

  /// The last line that was not empty, without prefix.
  const std::string& last_line() const { return last_line_; }

private:
  void complete_line(std::string& lines);

  std::string prefix_;
  std::string begun_;
  std::string last_line_;
};

} // namespace ringmaster::launch
