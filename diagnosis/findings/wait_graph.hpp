#pragma once

#include "diagnosis/findings/diagnosis.hpp"

#include <cstdint>
#include <vector>

namespace ringmaster::diagnosis {

/// A call in which ranks wait. Ranks are numbers of wait_graph::ranks.
struct waited_call {
  enum class reason : uint8_t {
    not_called,  ///< The blockers have not called it, or are busy with an earlier call.
    mismatch,    ///< The blockers have called something else with this sequence number.
    not_started, ///< All have called it; the blockers' GPUs have not started it, and no other call holds them up.
    unfinished,  ///< It has completed on some ranks, not on the blockers.
    inside,      ///< All have called and started it, and no rank stands out.
    no_partner   ///< The other side of a send or receive has not called its part.
  };
  rank_call call; ///< As one of the waiting ranks has it; of a mismatch, one of the majority.
  reason why = reason::not_called;
  fault_kind mismatch = fault_kind::none;
  bool no_majority = false;
  bool is_weak = false;           ///< Of sends only: a rank can continue while it sends.
  std::vector<uint32_t> waiting;  ///< Ranks for which it is the first call that has not completed.
  std::vector<uint32_t> blockers; ///< Ranks that it waits for.
  std::vector<uint32_t> suspects; ///< Ranks without a record: it may wait for them.
  int64_t since_ns = 0;           ///< When the first of the waiting ranks called it; 0: unknown.
};

/// Who waits in which call for whom. A rank waits in its first call that has not completed; a rank without such a call
/// waits in no collective.
class wait_graph {
public:
  explicit wait_graph(const job_records& job);

  const job_records& job() const { return job_; }
  const std::vector<uint32_t>& ranks() const { return ranks_; } ///< All that records or groups name, ascending.
  const std::vector<waited_call>& calls() const { return calls_; }
  /// The calls in which a rank waits. `with_weak`: also calls that only send.
  bool waits(uint32_t rank, bool with_weak) const;
  const std::vector<uint32_t>& heads(uint32_t rank) const { return heads_[rank]; }
  const rank_records* records(uint32_t rank) const { return records_[rank]; }
  uint32_t number_of(uint32_t global_rank) const;

private:
  void find_heads();
  void judge_collective(waited_call& x);
  void judge_arrived(waited_call& x, const std::vector<uint32_t>& arrived, const std::vector<const rank_call*>& their);
  void judge_creation(waited_call& x);
  void judge_transfer(waited_call& x);

  const job_records& job_;
  std::vector<uint32_t> ranks_;
  std::vector<const rank_records*> records_; ///< Null: the rank has none.
  std::vector<waited_call> calls_;
  std::vector<std::vector<uint32_t>> heads_; ///< By rank: indices in calls_.
};

} // namespace ringmaster::diagnosis
