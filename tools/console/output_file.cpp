#include "tools/console/output_file.hpp"

#include "messages/errc.hpp"
#include "runtime/text/file_size_limit.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <unistd.h>

namespace ringmaster {

namespace {

namespace fs = std::filesystem;

caf::error cannot_write(const std::string& file, const char* what, std::error_code why) {
  return make_error(errc::io_error,
                    fmt::format("cannot write {} '{}': {}", what, file, file_problem_text(why.value())));
}

std::error_code last_error() {
  return {errno, std::generic_category()};
}

std::error_code write_in_place(const fs::path& file, const std::string& text) {
  auto* stream = std::fopen(file.c_str(), "wb");
  if (stream == nullptr)
    return last_error();
  const auto written = std::fwrite(text.data(), 1, text.size(), stream) == text.size();
  const auto failure = written ? std::error_code{} : last_error();
  return std::fclose(stream) != 0 && !failure ? last_error() : failure;
}

/// In place of a file that is there.
std::error_code write_beside(const fs::path& file, const std::string& text) {
  const fs::path draft = file.string() + ".new";
  auto failure = write_in_place(draft, text);
  std::error_code ignored;
  if (!failure)
    fs::permissions(draft, fs::status(file, ignored).permissions(), failure);
  if (!failure)
    fs::rename(draft, file, failure);
  if (failure)
    fs::remove(draft, ignored);
  return failure;
}

/// Where there is no file, what is there is none (a pipe, a device), or nothing can be put beside it.
std::error_code write_new(const fs::path& file, const std::string& text, bool something_is_there) {
  const auto failure = write_in_place(file, text);
  std::error_code ignored;
  if (failure && !something_is_there)
    fs::remove(file, ignored); // the part that had room
  return failure;
}

} // namespace

caf::error write_output_file(const std::string& file, const std::string& text, const char* what) {
  std::error_code ignored;
  const auto there = fs::status(file, ignored);
  const auto target = fs::is_regular_file(there) ? fs::canonical(file, ignored) : fs::path{file};
  const auto folder = target.has_parent_path() ? target.parent_path() : fs::path{"."};
  const auto beside = fs::is_regular_file(there) && ::access(target.c_str(), W_OK) == 0
                      && ::access(folder.c_str(), W_OK) == 0;
  const auto failure = beside ? write_beside(target, text) : write_new(target, text, fs::exists(there));
  return failure ? cannot_write(file, what, failure) : caf::error{};
}

caf::error try_output_file(const std::string& file, const char* what) {
  std::error_code ignored;
  const auto before = fs::status(file, ignored).type();
  if (before != fs::file_type::not_found && before != fs::file_type::regular && before != fs::file_type::directory)
    return caf::none; // opening a pipe would begin something
  auto* stream = std::fopen(file.c_str(), "ab");
  if (stream == nullptr)
    return cannot_write(file, what, last_error());
  std::fclose(stream);
  if (before == fs::file_type::not_found)
    fs::remove(file, ignored);
  return caf::none;
}

caf::error check_outputs_differ(std::initializer_list<output_option> all) {
  for (auto one = all.begin(); one != all.end(); ++one)
    for (auto other = one + 1; other != all.end(); ++other)
      if (!one->file.empty() && one->file == other->file)
        return invalid(fmt::format("{} and {} both name {}: each needs a file of its own", one->option, other->option,
                                   one->file));
  return caf::none;
}

} // namespace ringmaster
