#include "runtime/launchers/hydra_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <unistd.h>

namespace ringmaster {

namespace {

constexpr int ancestors_max = 64;

std::string_view file_name_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1); // npos + 1 is 0
}

/// The word after `option`, or empty.
std::string_view value_of(const std::vector<std::string_view>& words, std::string_view option) {
  const auto found = std::ranges::find(words, option);
  return found == words.end() || std::next(found) == words.end() ? std::string_view{} : *std::next(found);
}

std::string file_text(const std::string& path) {
  std::ifstream in{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

/// The words of a command line in /proc, which are separated by zero bytes.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> result;
  for (size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\0', begin), text.size());
    result.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

/// From "PID (NAME) STATE PARENT ...", where NAME may contain brackets. 0: unknown.
pid_t parent_of(pid_t process) {
  const auto text = file_text(fmt::format("/proc/{}/stat", process));
  const auto after_name = text.rfind(')');
  int parent = 0;
  char state = 0;
  if (after_name == std::string::npos || std::sscanf(text.c_str() + after_name + 1, " %c %d", &state, &parent) != 2)
    return 0;
  return parent;
}

} // namespace

std::optional<std::string> hydra_job_in(const std::vector<std::string_view>& command_line) {
  constexpr size_t interpreters_max = 2; // "sh", or "valgrind --tool"
  const auto searched = std::min(command_line.size(), interpreters_max + 1);
  const auto is_daemon = [](std::string_view word) {
    const auto name = file_name_of(word);
    return name == "hydra_pmi_proxy" || name == "hydra_bstrap_proxy";
  };
  if (std::none_of(command_line.begin(), command_line.begin() + static_cast<ptrdiff_t>(searched), is_daemon))
    return std::nullopt;
  std::string place{value_of(command_line, "--control-port")};
  const auto host = value_of(command_line, "--upstream-host"), port = value_of(command_line, "--upstream-port");
  if (place.empty() && !host.empty() && !port.empty()) // Intel MPI
    place = fmt::format("{}:{}", host, port);
  if (place.empty())
    return std::nullopt;
  const auto group = value_of(command_line, "--pgid");
  return group.empty() ? place : fmt::format("{}/{}", place, group);
}

std::optional<std::string> hydra_job_of_ancestors() {
  auto process = ::getppid();
  for (int i = 0; i < ancestors_max && process > 1; ++i, process = parent_of(process)) {
    const auto text = file_text(fmt::format("/proc/{}/cmdline", process));
    if (auto job = hydra_job_in(words_of(text)))
      return job;
  }
  return std::nullopt;
}

} // namespace ringmaster
