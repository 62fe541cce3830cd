// Reads the sources. Two classes with one name in one namespace are one class to the linker, which then takes the
// functions of either for both.
#include "tests/support/file_content.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace {

/// The files that define each class. Classes in unnamed namespaces are left out, since they belong to their file.
class class_names {
public:
  void read(const std::string& text, const std::string& file) {
    const auto code = without_texts(text);
    scopes_.clear();
    size_t head_begin = 0, parentheses = 0;
    for (size_t i = 0; i < code.size(); ++i) {
      const char c = code[i];
      if (c == '(' || c == ')')
        parentheses += c == '(' ? 1 : parentheses > 0 ? -1 : 0;
      if (parentheses == 0 && c == '{')
        open(code.substr(head_begin, i - head_begin), file);
      else if (parentheses == 0 && c == '}' && !scopes_.empty())
        scopes_.pop_back();
      if (parentheses == 0 && (c == '{' || c == '}' || c == ';'))
        head_begin = i + 1;
    }
  }

  /// "ringmaster::event: a.hpp b.hpp" for each class that two files define.
  std::string defined_twice() const {
    std::string result;
    for (auto& [name, files] : files_) {
      if (files.size() < 2)
        continue;
      result += name + ":";
      for (auto& file : files)
        result += " " + file;
      result += "\n";
    }
    return result;
  }
  size_t count() const { return files_.size(); }

private:
  struct scope {
    bool is_namespace = false;
    std::string name; ///< Empty: unnamed.
  };

  /// The text without comments, literals and preprocessor lines.
  static std::string without_texts(const std::string& text) {
    std::string result;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto rest = std::string_view{text}.substr(i);
      auto end = std::string::npos;
      if (rest.starts_with("//") || (rest[0] == '#' && (i == 0 || text[i - 1] == '\n')))
        end = text.find('\n', i);
      else if (rest.starts_with("/*"))
        end = text.find("*/", i) + 1;
      else if (rest.starts_with("R\""))
        end = text.find(")" + text.substr(i + 2, text.find('(', i) - i - 2) + "\"", i) + text.find('(', i) - i;
      else if (rest[0] == '"'
               || (rest[0] == '\'' && (i == 0 || !std::isalnum(static_cast<unsigned char>(text[i - 1])))))
        for (end = i + 1; end < text.size() && text[end] != rest[0]; ++end)
          end += text[end] == '\\' ? 1 : 0;
      if (end == std::string::npos)
        result += text[i];
      else
        i = end;
    }
    return result;
  }

  /// The text as names, "::" and single other characters, with an empty word at the end.
  static std::vector<std::string> words_of(const std::string& head) {
    const auto is_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    std::vector<std::string> result;
    for (size_t i = 0, end = 0; i < head.size(); i = end) {
      for (end = i; end < head.size() && is_name(head[end]);)
        ++end;
      if (end == i)
        end += head.compare(i, 2, "::") == 0 ? 2 : 1;
      if (!std::isspace(static_cast<unsigned char>(head[i])))
        result.push_back(head.substr(i, end - i));
    }
    result.emplace_back();
    return result;
  }

  /// The name of the class whose definition these words open, or "".
  static std::string class_of(const std::vector<std::string>& words) {
    for (size_t i = 0; i + 1 < words.size(); ++i) {
      auto& key = words[i];
      if ((key != "class" && key != "struct" && key != "union" && key != "enum") || (i > 0 && words[i - 1] != ">"))
        continue;
      auto name = i + (key == "enum" && words[i + 1] == "class" ? 2 : 1);
      if (words[name] == "[") // [[nodiscard]]
        name += 5;
      if (name + 1 >= words.size())
        continue;
      auto& next = words[name + (words[name + 1] == "final" ? 2 : 1)];
      if (next.empty() || next == ":")
        return words[name];
    }
    return {};
  }

  void open(const std::string& head, const std::string& file) {
    const auto words = words_of(head);
    if (auto key = std::ranges::find(words, "namespace"); key - words.begin() <= 1 && key != words.end()) {
      std::string name;
      while (++key != words.end())
        name += *key;
      scopes_.push_back({true, name});
      return;
    }
    if (const auto name = class_of(words); !name.empty()) {
      std::string around;
      bool named = true;
      for (auto& x : scopes_) {
        named = named && x.is_namespace && !x.name.empty();
        around += x.name + "::";
      }
      if (named)
        files_[around + name].push_back(file);
    }
    scopes_.push_back({});
  }

  std::vector<scope> scopes_;
  std::map<std::string, std::vector<std::string>> files_;
};

std::string defined_in_both(const std::string& first, const std::string& second) {
  class_names names;
  names.read(first, "a");
  names.read(second, "b");
  return names.defined_twice();
}

} // namespace

TEST_CASE("class names: no class is defined twice in one namespace") {
  class_names names;
  for (auto* layer : {"actors", "client", "messages", "planner", "runtime", "tests", "tools", "training"})
    for (auto& entry :
         std::filesystem::recursive_directory_iterator{std::string{RINGMASTER_SOURCE_DIR} + "/" + layer}) {
      if (entry.path().extension() != ".hpp" && entry.path().extension() != ".cpp")
        continue;
      names.read(ringmaster::test::content_of(entry.path()),
                 std::filesystem::relative(entry.path(), RINGMASTER_SOURCE_DIR).string());
    }
  CHECK(names.count() > 300);
  CHECK(names.defined_twice() == "");
}

TEST_CASE("class names: what counts as two definitions, and what does not") {
  CHECK(defined_in_both("namespace n { class x { int y; }; }", "namespace n {\nstruct x final : z {};\n}")
        == "n::x: a b\n");
  CHECK(
    defined_in_both("namespace n { enum class x : int { a, b }; }", "namespace n::m { enum class x { a }; }").empty());
  CHECK(defined_in_both("namespace n { struct x; }", "namespace n { struct x {}; struct x y{1}; }")
          .empty()); // declared, used
  CHECK(defined_in_both("namespace n { namespace { struct x {}; } }", "namespace n { struct x {}; }").empty());
  CHECK(defined_in_both("namespace n { template <class T> struct x {}; }",
                        "namespace n { template <> struct x<int> {}; }")
          .empty());
  CHECK(
    defined_in_both("namespace n { void f() { struct x {}; } }", "namespace n { struct y { struct x {}; }; }").empty());
  CHECK(defined_in_both("namespace n { auto t = R\"(struct x {)\"; }",
                        "namespace n { struct x {}; /* } */ struct y {}; // {\n}")
          .empty());
}
