#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ringmaster::training {

/// [begin, end).
struct range {
  uint64_t begin = 0;
  uint64_t end = 0;

  uint64_t count() const { return end - begin; }
  friend bool operator==(const range&, const range&) = default;
};

/// A set of numbers: the samples of a value, or the shards. One range, as most sets are, takes no heap.
class range_set {
public:
  range_set() = default;
  explicit range_set(range first) : first_(first) {}
  range_set(const range_set& other)
    : first_(other.first_), more_(other.more_ ? std::make_unique<ranges>(*other.more_) : nullptr) {}
  range_set(range_set&&) = default;
  range_set& operator=(range_set other) {
    first_ = other.first_;
    more_ = std::move(other.more_);
    return *this;
  }

  bool empty() const { return first_.count() == 0; }
  range first() const { return first_; }
  uint64_t count() const;
  bool contains(range x) const;
  /// False, and nothing changes, where the sets share a number.
  bool add(const range_set& other);
  /// "0-3, 6".
  std::string text() const;

  friend bool operator==(const range_set& a, const range_set& b) {
    return a.first_ == b.first_ && a.rest_count() == b.rest_count() && (!a.more_ || *a.more_ == *b.more_);
  }

private:
  using ranges = std::vector<range>;

  std::span<const range> rest() const { return more_ ? std::span<const range>{*more_} : std::span<const range>{}; }
  size_t rest_count() const { return more_ ? more_->size() : 0; }
  bool add(range x);
  bool overlaps(range x) const;

  range first_;
  std::unique_ptr<ranges> more_; ///< Ascending, behind the first, none touching another; null where there are none.
};

} // namespace ringmaster::training
