#pragma once

#include "messages/errc.hpp"

#include <caf/expected.hpp>
#include <fmt/format.h>

#include <string>

namespace ringmaster {

/// The text of a file of at most 16 MiB, without its byte order mark. Errors: io_error, with the path and the reason.
caf::expected<std::string> read_text_file(const std::string& path);

/// Reads a file and returns the caf::expected of `parse`. Errors: those of read_text_file; corrupt, with the path
/// before the error of `parse`.
template <class Parse>
auto parse_file(const std::string& path, Parse parse) -> decltype(parse(std::string{})) {
  auto text = read_text_file(path);
  if (!text)
    return std::move(text.error());
  auto x = parse(*text);
  if (!x)
    return malformed(fmt::format("{}: {}", path, render(x.error())));
  return x;
}

} // namespace ringmaster
