#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace ringmaster::diagnosis {

/// The number of a text in a interned_texts; 0 is the empty text.
using text_id = uint32_t;

/// Equal texts, kept once. Dumps of thousands of ranks repeat the same few names.
class interned_texts {
public:
  interned_texts() { of({}); }
  interned_texts(interned_texts&&) = default;
  interned_texts& operator=(interned_texts&&) = default;
  interned_texts(const interned_texts&) = delete;
  interned_texts& operator=(const interned_texts&) = delete;

  text_id of(std::string_view text);
  std::string_view text(text_id id) const { return texts_[id]; }
  size_t size() const noexcept { return texts_.size(); }

private:
  std::deque<std::string> texts_; // a deque keeps its texts in place
  std::unordered_map<std::string_view, text_id> ids_;
};

} // namespace ringmaster::diagnosis
