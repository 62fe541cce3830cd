#include "tools/output_file.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

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

} // namespace ringmaster
