#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace ringmaster::diagnosis {

/// The number of a text in a text_table; 0 is the empty text.
using text_id = uint32_t;

/// Equal texts, kept once. Dumps of thousands of ranks repeat the same few names.
class text_table {
public:
  text_table() { of({}); }
  text_table(text_table&&) = default;
  text_table& operator=(text_table&&) = default;
  text_table(const text_table&) = delete;
  text_table& operator=(const text_table&) = delete;

  text_id of(std::string_view text);
  std::string_view text(text_id id) const { return texts_[id]; }
  size_t size() const noexcept { return texts_.size(); }

private:
  std::deque<std::string> texts_; // a deque keeps its texts in place
  std::unordered_map<std::string_view, text_id> ids_;
};

} // namespace ringmaster::diagnosis
