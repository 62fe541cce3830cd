#pragma once

#include "messages/metadata.pb.h"
#include "runtime/operations/call_key.hpp"
#include "runtime/operations/operation.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ringmaster {

/// What a communicator goes on with after its coordinator was restarted.
struct recovered_communicator {
  /// A rank's call: `sequences` are its operations that are in flight; none: all have ended.
  struct rank_call {
    device_id device;
    call_key call;
    std::vector<sequence_number> sequences;
    bool has_failed = false; ///< One of its operations was cancelled.
  };

  epoch_number epoch;                ///< The first that may open: no stream obeys an earlier one.
  std::vector<rank_device> ranks;    ///< In rank order, as of the latest epoch that any of them knows.
  std::vector<device_id> lost;       ///< Those of the ranks that have not come back.
  std::vector<operation> operations; ///< In flight, in their order: running, decided, or cancelled with the reason.
  sequence_number latest;            ///< The highest number that a stream knows.
  std::vector<device_id> without_results; ///< Ranks that came after the last operation, in place of lost ones.
  std::vector<std::pair<call_key, sequence_number>> host_calls; ///< Calls of the host that streams know.
  std::vector<rank_call> rank_calls; ///< The latest of each rank that have ended, and those in flight.
  uint64_t batch = 0;                ///< The latest of the host's calls.
  sequence_number failed_in_batch;   ///< The latest of its operations that was cancelled; 0: none.
};

/// Puts together what the streams of a communicator's ranks know:
///
/// - An operation that any rank has put in place, or puts in place, was decided: all ranks had finished it, and the
///   others still have their results.
/// - A shared-memory operation whose data is marked as moved has ended. One whose data was being moved may have lost
///   inputs: if its outputs overwrite them it fails, else it runs again.
/// - Every other operation runs again, from inputs that nothing has changed.
///
/// `devices`: by device, what those ranks say that have come back. `stored`: for ranks that none of them knows. Pure.
recovered_communicator recover(const proto::StoredCommunicator& stored,
                               const std::map<device_id, proto::RecalledCommunicator>& devices);

} // namespace ringmaster
