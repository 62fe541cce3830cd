#include "tests/repository/module_order.hpp"
#include "tests/repository/repository_files.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

using namespace ringmaster::test;

namespace {

module_order documented_order() {
  std::ifstream architecture{repository_root / "docs/ARCHITECTURE.md"};
  return module_order::of(architecture);
}

std::string lines(const std::vector<std::string>& complaints) {
  return fmt::format("{}", fmt::join(complaints, "\n"));
}

/// What the order of three modules reports for a file with this text.
std::string judged(const std::string& path, const std::string& text) {
  std::istringstream table{
    "prose\n| module | what it is |\n|---|---|\n| `cellar` | a |\n| `hall` | b |\n| `roof/...` | c |\n\n"
    "| `later` | no module |\n"};
  std::istringstream file{text};
  return lines(module_order::of(table).complaints(path, file));
}

} // namespace

TEST_CASE("modules: a file includes headers of its own module and of those above it in docs/ARCHITECTURE.md") {
  const auto order = documented_order();
  REQUIRE(order.modules().size() > 30);
  std::vector<std::string> found;
  for (auto& path : repository_files())
    if (is_source(path)) {
      std::ifstream text{repository_root / path};
      auto complaints = order.complaints(path, text);
      found.insert(found.end(), complaints.begin(), complaints.end());
    }
  CHECK(lines(found) == "");
}

TEST_CASE("modules: public headers, examples and tests of outside programs include public headers alone") {
  const auto order = documented_order();
  std::vector<std::string> found;
  std::set<std::string> roots;
  for (auto& path : repository_files())
    for (std::string root : {"examples/", "include/", "tests/extension/", "tests/installed/"})
      if (is_source(path) && path.starts_with(root)) {
        std::ifstream text{repository_root / path};
        auto complaints = order.private_includes(path, text);
        found.insert(found.end(), complaints.begin(), complaints.end());
        roots.insert(root);
      }
  CHECK(lines(found) == "");
  CHECK(roots.size() == 4); // none was renamed
}

TEST_CASE("modules: an example fits a page") {
  const std::map<std::string, size_t> others{
    {"examples/all_reduce.cpp", 45}, {"examples/my_module.cpp", 80}, {"examples/train_mlp.cpp", 80}};
  for (auto& path : repository_files()) {
    if (!is_source(path) || !path.starts_with("examples/"))
      continue;
    const auto text = text_of_file(path);
    const auto lines_max = others.contains(path) ? others.at(path) : 60;
    const auto length = static_cast<size_t>(std::ranges::count(text, '\n'));
    CHECK_MESSAGE(length <= lines_max, fmt::format("{} has {} lines, not {} at most", path, length, lines_max));
  }
}

TEST_CASE("modules: each row of the table has a folder with sources") {
  std::set<std::string> folders;
  for (auto& path : repository_files())
    if (is_source(path))
      folders.insert(folder_of(path));
  const auto order = documented_order();
  for (auto& module : order.modules())
    if (module.find("...") == std::string::npos)
      CHECK_MESSAGE(folders.count(module) == 1, module);
}

TEST_CASE("modules: no folder has too many files") {
  constexpr size_t files_max = 28;
  std::map<std::string, size_t> count;
  for (auto& path : repository_files())
    if (std::filesystem::path{path}.extension() != ".patch") // tests/mutants is a list, found by name
      ++count[folder_of(path)];
  for (auto& [folder, number] : count)
    CHECK_MESSAGE(number <= files_max, fmt::format("{} has {} files: divide it", folder, number));
}

TEST_CASE("modules: lists of sources are sorted") {
  std::vector<std::string> found;
  for (auto& path : repository_files())
    if (std::filesystem::path{path}.filename() == "CMakeLists.txt") {
      std::ifstream text{repository_root / path};
      auto complaints = unsorted_sources(path, text);
      found.insert(found.end(), complaints.begin(), complaints.end());
    }
  CHECK(lines(found) == "");
}

TEST_CASE("modules: an include of a module below is reported with its line") {
  CHECK(judged("hall/door.hpp", "#pragma once\n#include \"cellar/key.hpp\"\n#include \"hall/lamp.hpp\"\n") == "");
  CHECK(judged("cellar/key.cpp", "#include \"cellar/key.hpp\"\n\n#include \"hall/door.hpp\" // why\n")
        == "cellar/key.cpp:3: \"hall/door.hpp\" is in hall, which is below cellar");
  CHECK(judged("hall/door.hpp", "#include \"roof/loft/beam.hpp\"\n")
        == "hall/door.hpp:1: \"roof/loft/beam.hpp\" is in roof/..., which is below hall");
}

TEST_CASE("modules: a file or an include outside of all modules is reported") {
  CHECK(judged("later/x.cpp", "") == "later/x.cpp:1: the folder later is no module: give it a row");
  CHECK(judged("hall/side/x.cpp", "") == "hall/side/x.cpp:1: the folder hall/side is no module: give it a row");
  CHECK(judged("roof/x.cpp", "#include <vector>\n#include \"door.hpp\"\n")
        == "roof/x.cpp:2: \"door.hpp\" is in no module");
}

TEST_CASE("modules: an include that is not public is reported with its line") {
  std::istringstream table{"| module | what it is |\n|---|---|\n| `cellar` | a |\n| `roof/...` | b |\n"};
  const auto order = module_order::of(table);
  const auto judged_outside = [&](const std::string& text) {
    std::istringstream file{text};
    return lines(order.private_includes("examples/all_reduce.cpp", file));
  };
  CHECK(judged_outside("#include <ringmaster/client.hpp>\n#include <vector>\n#include <torch/torch.h>\n") == "");
  CHECK(judged_outside("\n#include \"cellar/key.hpp\"\n")
        == "examples/all_reduce.cpp:2: \"cellar/key.hpp\" is not public: only <ringmaster/...> is");
  CHECK(judged_outside("#include <roof/loft/beam.hpp>\n")
        == "examples/all_reduce.cpp:1: \"roof/loft/beam.hpp\" is not public: only <ringmaster/...> is");
  CHECK(judged_outside("#include \"beside.hpp\"\n")
        == "examples/all_reduce.cpp:1: \"beside.hpp\" is not public: only <ringmaster/...> is");
}

TEST_CASE("modules: an unsorted source is reported") {
  std::istringstream sorted{"add_library(x\n  a.cpp\n  b.cpp)\nadd_sources(x y\n  a.cpp\n  c.cpp)\n"};
  CHECK(lines(unsorted_sources("CMakeLists.txt", sorted)) == "");
  std::istringstream unsorted{"add_sources(x y\n  b.cpp\n  a.cpp)\n"};
  CHECK(lines(unsorted_sources("CMakeLists.txt", unsorted)) == "CMakeLists.txt:3: a.cpp belongs before b.cpp");
}

TEST_CASE("modules: no code reads a message") {
  // What a program must distinguish is a code or a field. RocksDB has no code for a database that another process
  // holds.
  const std::set<std::string> allowed{"runtime/journal/small_database.cpp"};
  const std::regex reads{R"((render\([^;]*\)|\b(error|async_?error|reason|cause|why|problem|doing)(\(\))?))"
                         R"( *\. *(find|rfind|starts_with|ends_with|compare)\()"};
  CHECK(std::regex_search("if (render(why).find(\"refused\") != text.npos)", reads));
  CHECK(std::regex_search("return x.async_error().starts_with(\"communicator\");", reads));
  CHECK_FALSE(std::regex_search("auto known = names.find(why);", reads));
  std::vector<std::string> found;
  for (auto& path : repository_files()) {
    if (!is_source(path) || path.starts_with("tests/") || allowed.count(path) != 0)
      continue;
    std::istringstream text{text_of_file(path)};
    size_t number = 0;
    for (std::string line; std::getline(text, line);)
      if (++number; std::regex_search(line, reads))
        found.push_back(fmt::format("{}:{}: {}", path, number, line));
  }
  CHECK(lines(found) == "");
}
