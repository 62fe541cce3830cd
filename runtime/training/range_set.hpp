#pragma once

#include <cstdint>
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

  bool empty() const { return first_.count() == 0; }
  range first() const { return first_; }
  uint64_t count() const;
  bool contains(range x) const;
  /// False, and nothing changes, where the sets share a number.
  bool add(const range_set& other);
  /// "0-3, 6".
  std::string text() const;

  friend bool operator==(const range_set&, const range_set&) = default;

private:
  bool add(range x);
  bool overlaps(range x) const;

  range first_;
  std::vector<range> more_; ///< Ascending, behind the first, none touching another.
};

} // namespace ringmaster::training
