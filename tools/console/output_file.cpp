#include "tools/console/output_file.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace ringmaster {

namespace {

caf::error cannot_write(const std::string& file, const char* what) {
  return make_error(errc::io_error, fmt::format("cannot write {} '{}': {}", what, file, std::strerror(errno)));
}

} // namespace

caf::error write_output_file(const std::string& file, const std::string& text, const char* what) {
  auto failed = [&] { return cannot_write(file, what); };
  auto* stream = std::fopen(file.c_str(), "wb");
  if (stream == nullptr)
    return failed();
  auto written = std::fwrite(text.data(), 1, text.size(), stream) == text.size();
  auto problem = written ? caf::error{} : failed();
  if (std::fclose(stream) != 0 && !problem)
    problem = failed();
  return problem;
}

caf::error replace_file(const std::string& file, const std::string& text, const char* what) {
  namespace fs = std::filesystem;
  std::error_code failure;
  auto target = fs::exists(file, failure) ? fs::canonical(file, failure) : fs::path{file};
  auto draft = target.string() + ".new";
  if (auto problem = write_output_file(draft, text, what))
    return problem;
  std::error_code ignored;
  failure.clear(); // which says so of a file that is new
  if (auto old = fs::status(target, ignored); fs::exists(old))
    fs::permissions(draft, old.permissions(), failure);
  if (!failure)
    fs::rename(draft, target, failure);
  if (!failure)
    return caf::none;
  fs::remove(draft, ignored);
  return make_error(errc::io_error, fmt::format("cannot write {} '{}': {}", what, file, failure.message()));
}

caf::error try_output_file(const std::string& file, const char* what) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto before = fs::status(file, ignored).type();
  if (before != fs::file_type::not_found && before != fs::file_type::regular && before != fs::file_type::directory)
    return caf::none; // opening a pipe would begin something
  auto* stream = std::fopen(file.c_str(), "ab");
  if (stream == nullptr)
    return cannot_write(file, what);
  std::fclose(stream);
  if (before == fs::file_type::not_found)
    fs::remove(file, ignored);
  return caf::none;
}

} // namespace ringmaster
