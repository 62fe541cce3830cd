#pragma once

#include "messages/errc.hpp"

#include <caf/expected.hpp>
#include <fmt/format.h>

#include <string>

namespace ringmaster {

/// The text of a file that somebody wrote, of 16 MiB at most, after its byte order mark. Errors: io_error, with the
/// path and what is wrong.
caf::expected<std::string> read_text_file(const std::string& path);

/// What `parse` makes of such a file's text: a caf::expected. Errors: read_text_file's; corrupt, with the path before
/// what `parse` says.
template <class Parse>
auto parse_file(const std::string& path, Parse parse) -> decltype(parse(std::string{})) {
  auto text = read_text_file(path);
  if (!text)
    return std::move(text.error());
  auto x = parse(*text);
  if (!x)
    return make_error(errc::corrupt, fmt::format("{}: {}", path, render(x.error())));
  return x;
}

} // namespace ringmaster
