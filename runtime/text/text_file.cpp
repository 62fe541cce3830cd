#include "runtime/text/text_file.hpp"

#include "runtime/text/utf8.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace ringmaster {

caf::expected<std::string> read_text_file(const std::string& path) {
  constexpr size_t largest = 16 << 20;
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown))
    return make_error(errc::io_error, fmt::format("{} is a directory: name the file in it", path));
  errno = 0;
  std::ifstream in{path, std::ios::binary};
  if (!in)
    return make_error(errc::io_error, fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  std::string text;
  char part[1 << 16];
  while (text.size() <= largest && (in.read(part, sizeof part), in.gcount() > 0))
    text.append(part, static_cast<size_t>(in.gcount()));
  if (in.bad())
    return make_error(errc::io_error, fmt::format("cannot read {} to its end", path));
  if (text.size() > largest)
    return make_error(errc::io_error, fmt::format("{} is larger than 16 MiB, the limit for such a file", path));
  if (const auto wrong = wide_encoding_problem(text))
    return make_error(errc::io_error, fmt::format("{}: {}", path, render(wrong)));
  text.erase(0, byte_order_mark_bytes(text));
  return text;
}

} // namespace ringmaster
