#include "tools/console/output_file.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace ringmaster {

caf::error write_output_file(const std::string& file, const std::string& text, const char* what) {
  auto failed = [&] {
    return make_error(errc::io_error, fmt::format("cannot write {} '{}': {}", what, file, std::strerror(errno)));
  };
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
  if (auto old = fs::status(target, failure); fs::exists(old))
    fs::permissions(draft, old.permissions(), failure);
  if (!failure)
    fs::rename(draft, target, failure);
  if (!failure)
    return caf::none;
  std::error_code ignored;
  fs::remove(draft, ignored);
  return make_error(errc::io_error, fmt::format("cannot write {} '{}': {}", what, file, failure.message()));
}

} // namespace ringmaster
