#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace ringmaster {

/// Sets of ranks, each kept once: two are the same exactly if their ids are. A set is its runs of ranks that follow
/// each other, sorted, so those that a ring or a tree makes take a few bytes, and any other set is exact as well.
class rank_sets {
public:
  using id = uint32_t;
  static constexpr id empty = 0;
  static constexpr uint32_t none = UINT32_MAX;

  /// Ranks [first, last).
  struct run {
    uint32_t first, last;
    friend bool operator==(const run&, const run&) = default;
  };

  /// Two sets together.
  struct united {
    id both = empty;
    uint32_t common = none; ///< A rank that is in each of the two.
  };

  rank_sets();

  /// Ranks [first, last).
  id range(uint32_t first, uint32_t last);
  united unite(id a, id b);

  bool contains(id set, uint32_t rank) const;
  uint32_t size(id set) const;
  /// Sorted, none next to another. Valid until a set is added.
  std::span<const run> runs(id set) const { return {begin(set), end(set)}; }
  /// "ranks 0 to 3, 7"; "rank 2"; "no rank".
  std::string text(id set) const;

private:
  /// Where a set's runs are, and their hash.
  struct place {
    uint64_t start;
    uint32_t size;
    uint32_t hash;
  };

  /// The set of the runs in `built_`.
  id interned();
  void grow_table();
  const run* begin(id set) const { return runs_.data() + places_[set].start; }
  const run* end(id set) const { return begin(set) + places_[set].size; }
  void append(run next);

  std::vector<run> runs_;
  std::vector<place> places_; ///< By id.
  std::vector<id> table_;     ///< Open addressing by hash; `none` where there is none. A power of two.
  std::vector<run> built_;
  std::unordered_map<uint64_t, united> memo_; ///< Of the pairs that take long.
};

} // namespace ringmaster
