#pragma once

#include <span>
#include <string_view>

namespace ringmaster::gateway {

/// A file that was built into the program.
struct page_file {
  std::string_view path; ///< "/app.js"; the page itself is "/".
  std::string_view content_type;
  std::string_view bytes;
};

/// The page of gateway/web. Written by cmake/embed_files.cmake.
std::span<const page_file> page_files();

/// gateway/http/openapi.json.
std::string_view openapi_document();

} // namespace ringmaster::gateway
