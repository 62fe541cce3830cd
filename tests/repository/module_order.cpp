#include "tests/repository/module_order.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::test {

namespace {

constexpr auto below = "/...";

bool starts(const std::string& text, const std::string& with) {
  return text.compare(0, with.size(), with) == 0;
}

/// The text between the two quotes that follow `head` at the start of a line, or "". Blanks may stand between.
std::string quoted_after(const std::string& line, const std::string& head, char open, char close) {
  auto at = line.find_first_not_of(" \t");
  if (at == std::string::npos || line.compare(at, head.size(), head) != 0)
    return {};
  at = line.find_first_not_of(" \t", at + head.size());
  if (at == std::string::npos || line[at] != open)
    return {};
  auto end = line.find(close, at + 1);
  return end == std::string::npos ? std::string{} : line.substr(at + 1, end - at - 1);
}

/// The source file that a line of a list consists of, or "".
std::string lone_source(const std::string& line) {
  auto from = line.find_first_not_of(' ');
  auto to = line.find_last_not_of(" )");
  if (from == std::string::npos || from == 0)
    return {};
  auto word = line.substr(from, to + 1 - from);
  const std::string ending = ".cpp";
  auto source = word.size() > ending.size() && word.compare(word.size() - ending.size(), ending.size(), ending) == 0;
  return source && word.find_first_of(" ($") == std::string::npos ? word : std::string{};
}

} // namespace

std::string folder_of(const std::string& path) {
  auto slash = path.rfind('/');
  return slash == std::string::npos ? std::string{} : path.substr(0, slash);
}

module_order module_order::of(std::istream& architecture) {
  module_order result;
  std::string line;
  auto inside = false;
  while (std::getline(architecture, line)) {
    if (!inside) {
      inside = starts(line, "| module |");
      continue;
    }
    if (!starts(line, "|"))
      break;
    if (auto module = quoted_after(line, "|", '`', '`'); !module.empty())
      result.modules_.push_back(std::move(module));
  }
  return result;
}

int module_order::row_of(const std::string& folder) const {
  auto row = [&](const std::string& module) {
    auto i = std::find(modules_.begin(), modules_.end(), module);
    return i == modules_.end() ? -1 : static_cast<int>(i - modules_.begin());
  };
  if (auto own = row(folder); own >= 0)
    return own;
  for (auto around = folder; !around.empty(); around = folder_of(around))
    if (auto general = row(around + below); general >= 0)
      return general;
  return -1;
}

std::vector<std::string> module_order::complaints(const std::string& path, std::istream& text) const {
  std::vector<std::string> result;
  const auto from = row_of(folder_of(path));
  if (from < 0)
    return {fmt::format("{}:1: the folder {} is no module: give it a row", path, folder_of(path))};
  std::string line;
  for (size_t number = 1; std::getline(text, line); ++number) {
    auto included = quoted_after(line, "#include", '"', '"');
    if (included.empty())
      continue;
    auto to = row_of(folder_of(included));
    if (to < 0)
      result.push_back(fmt::format("{}:{}: \"{}\" is in no module", path, number, included));
    else if (to > from)
      result.push_back(fmt::format("{}:{}: \"{}\" is in {}, which is below {}", path, number, included, modules_[to],
                                   modules_[from]));
  }
  return result;
}

std::vector<std::string> module_order::private_includes(const std::string& path, std::istream& text) const {
  std::vector<std::string> result;
  std::string line;
  for (size_t number = 1; std::getline(text, line); ++number) {
    auto included = quoted_after(line, "#include", '"', '"');
    if (included.empty()) {
      included = quoted_after(line, "#include", '<', '>');
      if (row_of(folder_of(included)) < 0)
        continue; // a public header, or one of another library
    }
    result.push_back(fmt::format("{}:{}: \"{}\" is not public: only <ringmaster/...> is", path, number, included));
  }
  return result;
}

std::vector<std::string> unsorted_sources(const std::string& path, std::istream& text) {
  std::vector<std::string> result;
  std::string line, before;
  for (size_t number = 1; std::getline(text, line); ++number) {
    auto source = lone_source(line);
    if (!source.empty() && source < before)
      result.push_back(fmt::format("{}:{}: {} belongs before {}", path, number, source, before));
    before = std::move(source);
  }
  return result;
}

} // namespace ringmaster::test
