#include "diagnosis/records/interned_texts.hpp"

namespace ringmaster::diagnosis {

text_id interned_texts::of(std::string_view text) {
  if (auto known = ids_.find(text); known != ids_.end())
    return known->second;
  auto id = static_cast<text_id>(texts_.size());
  ids_.emplace(texts_.emplace_back(text), id);
  return id;
}

} // namespace ringmaster::diagnosis
