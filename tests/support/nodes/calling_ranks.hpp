#pragma once

#include "client/rank_communicator.hpp"
#include "tests/support/nodes/simulated_nodes.hpp"
#include "tests/support/trials/collective_trial.hpp"

#include <deque>
#include <string>
#include <vector>

namespace ringmaster::test {

/// The ranks of a communicator on simulated nodes that call for themselves, as where each is a process: every rank's
/// handle is in its device's process, and what it says goes from there.
class calling_ranks {
public:
  calling_ranks(simulated_nodes& cluster, const gpu_sim::CommInitResponse& comm);

  /// Every rank makes its part of all of these, one after the other, or in one group: each when it comes to it, up to
  /// `apart` after its call before, or after `pauses`, by the trial's index, and as much.
  void call_later(const std::deque<collective_trial>& trials, const std::vector<caf::timespan>& pauses,
                  caf::timespan apart, bool in_group);
  /// A rank makes this call now.
  work call(uint32_t rank, const proto::RankCall::Part& part, const call_options& how = {}) {
    return handles_[rank].call(part, how);
  }
  /// Whether all calls have been made and answered, but for those of processes that have ended or, if `now`, stand
  /// still.
  bool answered(bool now) const;
  /// Why a call failed, of processes that have not ended; empty where none has.
  std::string failure() const;
  /// Whether a rank received a success for its part of this trial.
  bool is_well(size_t trial) const;

private:
  struct made_call {
    uint32_t rank = 0;
    std::vector<size_t> trials;
    work calls;
  };

  simulated_process& process_of(uint32_t rank) const { return *processes_[rank]; }
  void make(uint32_t rank, const std::vector<std::pair<size_t, proto::RankCall::Part>>& parts, bool in_group);

  simulated_nodes& cluster_;
  std::vector<simulated_process*> processes_; ///< By rank.
  std::vector<rank_communicator> handles_;    ///< By rank.
  std::vector<made_call> calls_;
  size_t to_come_ = 0; ///< Calls that have not been made yet.
};

} // namespace ringmaster::test
