#include "tools/processes/line_prefixer.hpp"

#include <algorithm>

namespace ringmaster::launch {

line_prefixer::line_prefixer(std::string_view name) : prefix_("[") {
  prefix_.append(name).append("] ");
}

std::string line_prefixer::feed(std::string_view bytes) {
  std::string lines;
  while (!bytes.empty()) {
    auto room = max_line_bytes - begun_.size();
    auto end = bytes.find('\n');
    auto taken = std::min({end, room, bytes.size()});
    begun_.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    if (!bytes.empty() && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      complete_line(lines);
    } else if (begun_.size() == max_line_bytes) {
      complete_line(lines);
    }
  }
  return lines;
}

std::string line_prefixer::flush() {
  std::string lines;
  if (!begun_.empty())
    complete_line(lines);
  return lines;
}

void line_prefixer::complete_line(std::string& lines) {
  // A remote shell may end lines with CRLF.
  if (!begun_.empty() && begun_.back() == '\r')
    begun_.pop_back();
  lines.append(prefix_).append(begun_).push_back('\n');
  if (begun_.find_first_not_of(" \t") != std::string::npos)
    last_line_ = begun_;
  begun_.clear();
}

} // namespace ringmaster::launch
