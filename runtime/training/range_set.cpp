#include "runtime/training/range_set.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::training {

namespace {

bool share(range a, range b) {
  return a.begin < b.end && b.begin < a.end;
}

std::string text_of(range x) {
  return x.count() == 1 ? fmt::format("{}", x.begin) : fmt::format("{}-{}", x.begin, x.end - 1);
}

} // namespace

uint64_t range_set::count() const {
  auto result = first_.count();
  for (auto x : more_)
    result += x.count();
  return result;
}

bool range_set::contains(range x) const {
  auto holds = [x](range y) { return y.begin <= x.begin && x.end <= y.end; };
  return holds(first_) || std::any_of(more_.begin(), more_.end(), holds);
}

bool range_set::overlaps(range x) const {
  return share(first_, x) || std::any_of(more_.begin(), more_.end(), [x](range y) { return share(x, y); });
}

bool range_set::add(range x) {
  if (x.count() == 0)
    return true;
  if (empty()) {
    first_ = x;
    return true;
  }
  if (more_.empty() && x.begin == first_.end) { // the next micro-batch: by far the most
    first_.end = x.end;
    return true;
  }
  std::vector<range> all{first_};
  all.insert(all.end(), more_.begin(), more_.end());
  all.insert(std::find_if(all.begin(), all.end(), [x](range y) { return y.begin > x.begin; }), x);
  more_.clear();
  first_ = all.front();
  for (size_t i = 1; i < all.size(); ++i) {
    auto& last = more_.empty() ? first_ : more_.back();
    if (all[i].begin == last.end)
      last.end = all[i].end;
    else
      more_.push_back(all[i]);
  }
  return true;
}

bool range_set::add(const range_set& other) {
  if (overlaps(other.first_) || std::any_of(other.more_.begin(), other.more_.end(), [this](range x) { return overlaps(x); }))
    return false;
  add(other.first_);
  for (auto x : other.more_)
    add(x);
  return true;
}

std::string range_set::text() const {
  if (empty())
    return "none";
  auto result = text_of(first_);
  for (auto x : more_)
    result += ", " + text_of(x);
  return result;
}

} // namespace ringmaster::training
