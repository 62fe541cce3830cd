#pragma once

#include "messages/collective.pb.h"
#include "runtime/schedule/collective.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace ringmaster::test {

struct collective_options {
  proto::CollectiveKind kind = proto::ALL_REDUCE;
  std::string algorithm = "direct";
  uint32_t ranks = 4;
  uint64_t count = 13;
  uint32_t root = 0;
  uint32_t peer = 0;
  std::vector<uint64_t> counts = {};
  uint64_t chunk = 0;
  bool in_place = false;
  uint32_t devices_a_host = 0; ///< As `simulation_options` has it.
};

/// "halving reduce_scatter over 5 ranks, root 0, ..."
std::string text_of(const collective_options& x);
proto::Collective collective_of(const collective_options& x);

/// What a collective on whole numbers does to each rank's memory, by what its kind means, apart from any algorithm. A
/// rank has a region of its own: guard words, input (or the one buffer), guard words, output, guard words.
class collective_expectation {
public:
  /// Who has a rank when the operation ends.
  struct holder {
    uint32_t rank = 0; ///< At the start: whose input counts.
    uint64_t device = 0;
    bool came_later = false; ///< In a lost one's place.
  };
  using group = std::vector<holder>;

  /// `salt`: makes values differ from those of others.
  explicit collective_expectation(const collective_options& opts, uint64_t salt = 0);

  /// Of a region.
  uint64_t bytes() const { return (3 * guard + 2 * room_) * 8; }
  /// Bytes from the start of a region.
  uint64_t input_at() const { return guard * 8; }
  uint64_t output_at() const { return (2 * guard + room_) * 8; }
  /// What a rank's region holds at the start.
  const std::vector<int64_t>& before(uint32_t rank) const { return before_[rank]; }

  /// What is wrong with the region that is found at a place of the group that ended the operation, which may have
  /// `failed`; empty: nothing.
  std::string wrong_in(const group& members, uint32_t place, bool failed, const std::vector<int64_t>& found) const;

private:
  static constexpr uint64_t guard = 8; ///< Elements.

  plan_request world_of(const group& members) const;
  int64_t result(const group& members, const plan_request& world, uint32_t place, uint64_t index) const;

  collective_options options_;
  plan_request world_;                       ///< Of all ranks.
  uint64_t room_ = 0;                        ///< Elements of the largest buffer.
  std::vector<std::vector<int64_t>> before_; ///< By rank.
};

} // namespace ringmaster::test
