#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

/// Writes JSON (RFC 8259) piece by piece, with all that has to stand between the pieces:
///
///   json_writer json;
///   json.object().member("kind", "ring").list("ranks").value(0).value(1).end().end();
///   json.take();   // {"kind":"ring","ranks":[0,1]}
///
/// Whoever opens an object or a list ends it; in an object each value has a name. Texts become UTF-8, as json_text has
/// it. A number that JSON does not have (an infinity) is null.
class json_writer {
public:
  /// What stands between a name or a value and the next.
  enum class style : uint8_t {
    dense,  ///< {"a":1,"b":2}
    spaced, ///< {"a": 1, "b": 2}
  };

  explicit json_writer(style how = style::dense) : spaced_(how == style::spaced) {}

  json_writer& object();
  json_writer& object(std::string_view name) { return key(name).object(); }
  json_writer& list();
  json_writer& list(std::string_view name) { return key(name).list(); }
  /// Of the object or list that was opened last.
  json_writer& end();
  /// What comes next begins a line of its own, behind so many blanks.
  json_writer& line(size_t indent = 0);

  json_writer& key(std::string_view name);
  json_writer& value(std::string_view text);
  json_writer& value(const char* text) { return value(std::string_view{text}); }
  json_writer& value(const std::string& text) { return value(std::string_view{text}); }
  json_writer& value(std::same_as<bool> auto x) { return literal(x ? "true" : "false"); }
  json_writer& value(std::integral auto x) requires(!std::same_as<decltype(x), bool>) {
    return literal(std::to_string(x));
  }
  /// As many digits as it takes to read the same number again.
  json_writer& value(std::floating_point auto x) { return rounded(static_cast<double>(x), 17); }
  /// So many digits at most; so many behind the point.
  json_writer& rounded(double x, int digits);
  json_writer& fixed(double x, int decimals);
  json_writer& null() { return literal("null"); }
  /// Nothing is null.
  template <class T>
  json_writer& value(const std::optional<T>& x) {
    return x ? value(*x) : null();
  }
  /// What is written as JSON already: a number of its caller's own making, or a value of another writer's.
  json_writer& literal(std::string_view json);

  template <class T>
  json_writer& member(std::string_view name, const T& x) {
    return key(name).value(x);
  }

  /// Of what is written so far.
  size_t size() const noexcept { return text_.size(); }
  /// All that was written; the writer is as new then.
  std::string take();

private:
  struct level {
    char closing;
    bool empty = true;
  };

  void separate();

  std::string text_;
  std::vector<level> open_;
  bool spaced_;
  bool named_ = false; ///< The value's name has just been written.
  std::string break_;  ///< What goes before the next: a new line, or nothing.
};

} // namespace ringmaster
