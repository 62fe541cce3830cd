#include <ringmaster/strategy/range_set.hpp>

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

void range_set::ranges_end::operator()(ranges* x) const noexcept {
  delete x;
}

range_set::ranges_pointer range_set::copy_of(const ranges& x) {
  return ranges_pointer{new ranges{x}};
}

uint64_t range_set::count() const {
  auto result = first().count();
  for (auto x : rest())
    result += x.count();
  return result;
}

std::vector<range> range_set::all() const {
  std::vector<range> result;
  if (!empty())
    result.push_back(first());
  for (auto& each : rest())
    result.push_back(each);
  return result;
}

bool range_set::contains(range x) const {
  auto holds = [x](range y) { return y.begin <= x.begin && x.end <= y.end; };
  return holds(first()) || std::ranges::any_of(rest(), holds);
}

bool range_set::overlaps(range x) const {
  return share(first(), x) || std::ranges::any_of(rest(), [x](range y) { return share(x, y); });
}

bool range_set::add(range x) {
  if (x.count() == 0)
    return true;
  if (empty()) {
    set_first(x);
    return true;
  }
  if (rest_count() == 0 && x.begin == end_) { // the next micro-batch: by far the most
    end_ = static_cast<uint32_t>(x.end);
    return true;
  }
  ranges all{first()};
  all.insert(all.end(), rest().begin(), rest().end());
  all.insert(std::find_if(all.begin(), all.end(), [x](range y) { return y.begin > x.begin; }), x);
  size_t last = 0;
  for (size_t i = 1; i < all.size(); ++i)
    if (all[i].begin == all[last].end)
      all[last].end = all[i].end;
    else
      all[++last] = all[i];
  set_first(all.front());
  more_ = last == 0 ? nullptr : copy_of({all.begin() + 1, all.begin() + static_cast<ptrdiff_t>(last) + 1});
  return true;
}

bool range_set::add(const range_set& other) {
  if (overlaps(other.first()) || std::ranges::any_of(other.rest(), [this](range x) { return overlaps(x); }))
    return false;
  add(other.first());
  for (auto x : other.rest())
    add(x);
  return true;
}

std::string range_set::text() const {
  if (empty())
    return "none";
  auto result = text_of(first());
  for (auto x : rest())
    result += ", " + text_of(x);
  return result;
}

} // namespace ringmaster::training
