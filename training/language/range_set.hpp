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

/// A set of numbers below 2^32: the samples of a value. One range, as most sets are, takes no heap, and 16 bytes:
/// there are millions of values. What only other sets need is not inline, so that a value is moved in a few
/// instructions.
class range_set {
public:
  range_set() = default;
  explicit range_set(range first) { set_first(first); }
  range_set(const range_set& other)
    : begin_(other.begin_), end_(other.end_), more_(other.more_ ? copy_of(*other.more_) : nullptr) {}
  range_set(range_set&&) = default;
  range_set& operator=(const range_set& other) {
    if (more_ || other.more_)
      more_ = other.more_ ? copy_of(*other.more_) : nullptr;
    begin_ = other.begin_;
    end_ = other.end_;
    return *this;
  }
  range_set& operator=(range_set&&) = default;

  bool empty() const { return begin_ == end_; }
  range first() const { return {begin_, end_}; }
  /// Its ranges, ascending.
  std::vector<range> all() const;
  uint64_t count() const;
  bool contains(range x) const;
  /// False, and nothing changes, where the sets share a number.
  bool add(const range_set& other);
  /// "0-3, 6".
  std::string text() const;

  friend bool operator==(const range_set& a, const range_set& b) {
    return a.begin_ == b.begin_ && a.end_ == b.end_ && a.rest_count() == b.rest_count()
           && (!a.more_ || *a.more_ == *b.more_);
  }

private:
  using ranges = std::vector<range>;
  struct ranges_end {
    void operator()(ranges* x) const noexcept;
  };
  using ranges_pointer = std::unique_ptr<ranges, ranges_end>;

  static ranges_pointer copy_of(const ranges& x);
  std::span<const range> rest() const { return more_ ? std::span<const range>{*more_} : std::span<const range>{}; }
  void set_first(range x) {
    begin_ = static_cast<uint32_t>(x.begin);
    end_ = static_cast<uint32_t>(x.end);
  }
  size_t rest_count() const { return more_ ? more_->size() : 0; }
  bool add(range x);
  bool overlaps(range x) const;

  uint32_t begin_ = 0, end_ = 0; ///< The first range.
  ranges_pointer more_;          ///< Ascending, after the first, none touching another; null where there are none.
};

} // namespace ringmaster::training
