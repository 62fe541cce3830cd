# Writes a source file with the bytes of files, which gateway/http/page_files.hpp declares:
#   cmake -D output=FILE.cpp -D openapi=FILE -D root=DIRECTORY -D "files=a.html,b.js" -P embed_files.cmake
# `files` are below `root`; index.html becomes the page "/".
function(bytes_of file result)
  file(READ "${file}" hex HEX)
  string(LENGTH "${hex}" digits)
  math(EXPR size "${digits} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" text "${hex}")
  set(${result} "std::string_view{\"${text}\", ${size}}" PARENT_SCOPE)
endfunction()

set(types
  html "text/html; charset=utf-8"
  js "text/javascript; charset=utf-8"
  css "text/css; charset=utf-8"
  svg "image/svg+xml"
  png "image/png"
  ico "image/x-icon"
  json "application/json"
  woff2 "font/woff2"
  txt "text/plain; charset=utf-8")

bytes_of("${openapi}" openapi_bytes)
string(REPLACE "," ";" files "${files}")
set(entries "")
foreach(file IN LISTS files)
  bytes_of("${root}/${file}" content)
  get_filename_component(extension "${file}" LAST_EXT)
  string(SUBSTRING "${extension}" 1 -1 extension)
  list(FIND types "${extension}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "${file}: cmake/embed_files.cmake knows no content type for .${extension}")
  endif()
  math(EXPR place "${place} + 1")
  list(GET types ${place} type)
  set(path "/${file}")
  if(file STREQUAL "index.html")
    set(path "/")
  endif()
  string(APPEND entries "  page_file{\"${path}\", \"${type}\", ${content}},\n")
endforeach()
string(REPLACE "," ";" count "${files}")
list(LENGTH count count)
file(WRITE "${output}.new" "// Written by cmake/embed_files.cmake.
#include \"gateway/http/page_files.hpp\"

#include <array>

namespace ringmaster::gateway {

namespace {

constexpr std::array<page_file, ${count}> files{{
${entries}}};

} // namespace

std::span<const page_file> page_files() {
  return files;
}

std::string_view openapi_document() {
  return ${openapi_bytes};
}

} // namespace ringmaster::gateway
")
file(COPY_FILE "${output}.new" "${output}" ONLY_IF_DIFFERENT)
