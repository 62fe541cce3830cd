// Comments, messages, documents and names use the words of the field. This test reads them all and reports file and
// line of every phrase that readers had to read twice.
#include "tests/repository/repository_files.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>

namespace ringmaster::test::english {

namespace {

/// A phrase that must not occur in prose. Texts are searched for `text`, in lower case, which is fast; where there is
/// an `expression`, the line must match it as well.
struct phrase {
  std::string_view text;
  const char* expression = nullptr;
};

// Lines with `dialect: ok` name a phrase, and do not use it.
constexpr std::array phrases{
  phrase{"told",
         R"(\b((is|are|was|were|be|been) told\b(?! apart)|told (as|to end|here|again|in|which|whether|so|by|of|)"
         R"(why|what|with)\b|(as|unless) told\b))"},
  phrase{"behind",
         R"(\bbehind (it|its|them|the (step|plans?|operation|call|epoch|release|first|last|one|end|begin)|each|)"
         R"(a (step|call))\b)"},
  phrase{"nobody"},        // dialect: ok
  phrase{"somebody"},      // dialect: ok
  phrase{"everybody"},     // dialect: ok
  phrase{"whoever"},       // dialect: ok
  phrase{"whomever"},      // dialect: ok
  phrase{"whichever"},     // dialect: ok
  phrase{"so many"},       // dialect: ok
  phrase{"as many as"},    // dialect: ok
  phrase{"what is so"},    // dialect: ok
  phrase{"is so of"},      // dialect: ok
  phrase{"the like"},      // dialect: ok
  phrase{"be it"},         // dialect: ok
  phrase{"of one's"},      // dialect: ok
  phrase{"one's own"},     // dialect: ok
  phrase{"stand still"},   // dialect: ok
  phrase{"stands still"},  // dialect: ok
  phrase{"stood still"},   // dialect: ok
  phrase{"in turns"},      // dialect: ok
  phrase{"by turns"},      // dialect: ok
  phrase{"leave it away"}, // dialect: ok
  phrase{"has gone"},      // dialect: ok
  phrase{"goes by"},       // dialect: ok
  phrase{"go by"},         // dialect: ok
  phrase{"he is"},         // dialect: ok
  phrase{"he has"},        // dialect: ok
  phrase{"he may"},        // dialect: ok
  phrase{"he likes"},      // dialect: ok
  phrase{"he was"},        // dialect: ok
  phrase{"he will"},       // dialect: ok
  phrase{"no more", R"(\bno more\b.*\bthan that\b)"},
  phrase{"what cannot be"}, // dialect: ok
  phrase{"have their day"}, // dialect: ok
  phrase{"a word"},         // dialect: ok
  phrase{"without a loss"}, // dialect: ok
  phrase{"seldom"},         // dialect: ok
  phrase{"any more"},       // dialect: ok
  phrase{"begin anew"},     // dialect: ok
  phrase{"begins anew"},    // dialect: ok
  phrase{"made anew"},      // dialect: ok
  phrase{"floor", R"(\bfloors?\b.*\broom)"},
};

/// Names that must not occur in code.
constexpr std::array names{
  phrase{"told_"},
  phrase{"_told"},
  phrase{"let_stay"},                        // dialect: ok
  phrase{"seldom"},                          // dialect: ok
  phrase{"data_rests", R"(\bdata_rests\b)"}, // dialect: ok
  phrase{"must_rest", R"(\bmust_rest\b)"},   // dialect: ok
  phrase{"lookson", R"(\blookson\b)"},       // dialect: ok
  phrase{"part_ranks", R"(\bpart_ranks\b)"}, // dialect: ok
  phrase{"behind_", R"(\bbehind_\w)"},
  phrase{"nobody_", R"(\bnobody_)"},             // dialect: ok
  phrase{"meeting_page", R"(\bmeeting_page\b)"}, // dialect: ok
};

/// Uses that are plain English all the same.
struct allowed_use {
  std::string_view file, phrase;
};
constexpr std::array<allowed_use, 0> allowed_uses{};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// The text with everything that is neither comment nor string literal replaced by blanks. Lines keep their places.
class prose_reader {
public:
  prose_reader(const std::string& text, bool is_cpp) : text_(text), is_cpp_(is_cpp), prose_(text.size(), ' ') {
    while (at_ < text_.size())
      if (text_[at_] == '\n')
        prose_[at_] = '\n', ++at_;
      else if (comment_starts())
        copy_until(text_.find('\n', at_));
      else if (is_cpp_ && text_.compare(at_, 2, "/*") == 0)
        copy_until(after("*/"));
      else if (is_cpp_ && text_.compare(at_, 2, "R\"") == 0)
        copy_until(after(")" + text_.substr(at_ + 2, text_.find('(', at_) - at_ - 2) + "\""));
      else if (text_[at_] == '"')
        copy_until(literal_end());
      else
        ++at_;
  }

  std::string take() && { return std::move(prose_); }

private:
  bool comment_starts() const {
    if (is_cpp_)
      return text_.compare(at_, 2, "//") == 0;
    return text_[at_] == '#' && at_ + 1 < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_ + 1])) != 0;
  }

  size_t after(const std::string& end) const {
    const auto found = text_.find(end, at_);
    return found == text_.npos ? found : found + end.size();
  }

  /// Also at the end of the line, where a lone quote does not open a literal.
  size_t literal_end() const {
    auto end = at_ + 1;
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\n')
      end += text_[end] == '\\' ? 2 : 1;
    return end + 1;
  }

  void copy_until(size_t end) {
    for (end = std::min(end, text_.size()); at_ < end; ++at_)
      prose_[at_] = text_[at_] == '"' ? ' ' : text_[at_];
  }

  const std::string& text_;
  bool is_cpp_;
  size_t at_ = 0;
  std::string prose_;
};

/// Finds a list of phrases in text.
template <size_t N>
class phrase_search {
public:
  explicit phrase_search(const std::array<phrase, N>& list) : list_(list) {
    for (size_t i = 0; i < N; ++i)
      if (list[i].expression != nullptr)
        expressions_[i] = std::regex{list[i].expression};
  }

  /// Adds "file:12: the phrase" for each one in `text`, which is in lower case. A phrase consists of whole words;
  /// `within_words`: it may also be a part of one.
  void find(const std::string& file, const std::string& text, bool within_words,
            std::vector<std::string>& found) const {
    for (size_t i = 0; i < N; ++i)
      for (auto at = text.find(list_[i].text); at != text.npos; at = text.find(list_[i].text, at + 1)) {
        const auto end = at + list_[i].text.size();
        const auto line_begin = text.rfind('\n', at) + 1, line_end = std::min(text.find('\n', at), text.size());
        const auto is_apart = (at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]));
        const auto is_meant = list_[i].expression != nullptr
                                ? std::regex_search(text.begin() + static_cast<std::ptrdiff_t>(line_begin),
                                                    text.begin() + static_cast<std::ptrdiff_t>(line_end),
                                                    expressions_[i])
                                : within_words || is_apart;
        const auto is_allowed = std::ranges::any_of(allowed_uses, [&](auto& use) {
          return use.file == file && use.phrase == list_[i].text;
        });
        if (is_meant && !is_allowed)
          found.push_back(fmt::format(
            "{}:{}: {}", file, 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'),
            list_[i].text));
      }
  }

private:
  const std::array<phrase, N>& list_;
  std::array<std::regex, N> expressions_;
};

class checker {
public:
  /// "file:12: the phrase", a line each.
  std::vector<std::string> complaints(const std::string& file, const std::string& text) const {
    std::vector<std::string> found;
    if (file.ends_with(".md") || file.ends_with(".conf")) {
      phrases_.find(file, lower_case(text), false, found);
      return found;
    }
    const auto is_cpp = file.ends_with(".cpp") || file.ends_with(".hpp") || file.ends_with(".h")
                        || file.ends_with(".proto");
    phrases_.find(file, lower_case(prose_reader{text, is_cpp}.take()), false, found);
    names_.find(file, text, true, found);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  static bool reads(const std::string& file) {
    const std::filesystem::path path{file};
    constexpr std::array extensions{".cmake", ".conf", ".cpp", ".h", ".hpp", ".in", ".md", ".proto", ".py", ".txt"};
    return path.filename() == "run" || std::ranges::find(extensions, path.extension().string()) != extensions.end();
  }

private:
  phrase_search<phrases.size()> phrases_{phrases};
  phrase_search<names.size()> names_{names};
};

std::string lines(const std::vector<std::string>& complaints) {
  return fmt::format("{}", fmt::join(complaints, "\n"));
}

} // namespace

TEST_CASE("plain English: comments, messages, documents and names") {
  const checker check;
  std::vector<std::string> found;
  for (auto& file : repository_files())
    if (checker::reads(file) && file != "tests/repository/plain_english_test.cpp") {
      auto complaints = check.complaints(file, text_of_file(file));
      found.insert(found.end(), complaints.begin(), complaints.end());
    }
  CHECK(lines(found) == "");
}

TEST_CASE("plain English: what is reported, and what is not") {
  const checker check;
  const auto judge = [&](const std::string& file, const std::string& text) {
    return lines(check.complaints(file, text));
  };
  CHECK(judge("a.md", "One.\nNobody is here, and the rank is told so.")           // dialect: ok
        == "a.md:2: told\na.md:2: nobody");                                       // dialect: ok
  CHECK(judge("a.md", "They can be told apart. A likelihood. The nobodylike.")    // dialect: ok
        == "");                                                                   // dialect: ok
  CHECK(judge("a.cpp", "x = 1; // whoever calls\nauto text = \"by turns\";")      // dialect: ok
        == "a.cpp:1: whoever\na.cpp:2: by turns");                                // dialect: ok
  CHECK(judge("a.cpp", "auto help = R\"(first\nthen seldom)\"; whoever(nobody);") // dialect: ok
        == "a.cpp:2: seldom");                                                    // dialect: ok
  CHECK(judge("a.hpp", "int told_bytes = behind_the_end;")                        // dialect: ok
        == "a.hpp:1: told_\na.hpp:1: behind_");                                   // dialect: ok
  CHECK(judge("run", "whoever # nobody\nsay \"it is any more\"")                  // dialect: ok
        == "run:1: nobody\nrun:2: any more");                                     // dialect: ok
}

} // namespace ringmaster::test::english
