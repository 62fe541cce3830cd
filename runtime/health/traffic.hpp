#pragma once

#include "messages/collective.pb.h"
#include "messages/ids.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace ringmaster {

/// How many bytes a communicator's ranks have received by each route, in all and lately. A rank reports repeatedly what
/// it has received of an operation, and once more when it has finished: the difference counts. Pure: the caller passes
/// the time in.
class traffic {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// Over how long a rate is taken, and in which steps.
  static constexpr std::chrono::milliseconds window{5000}, step{500};

  /// `received`: in this attempt since its start, by route.
  void heard(device_id device, epoch_number epoch, sequence_number sequence,
             const google::protobuf::RepeatedPtrField<proto::RouteBytes>& received, time_point now);
  /// Bytes that are not reported elsewhere.
  void moved(const std::string& route, uint64_t bytes, time_point now);
  void forget(device_id device) { attempts_.erase(device); }

  struct row {
    std::string route;
    uint64_t bytes = 0;
    uint64_t bytes_per_s = 0;
  };
  /// By name.
  std::vector<row> rows(time_point now) const;

private:
  struct slot {
    int64_t number = 0; ///< Of the step.
    uint64_t bytes = 0;
  };
  struct counter {
    uint64_t bytes = 0;
    std::deque<slot> lately; ///< The steps of one window, oldest first, at most; none without bytes.
  };
  struct attempt {
    epoch_number epoch;
    sequence_number sequence;
    std::map<std::string, uint64_t> heard; ///< By route.
  };

  static int64_t number_of(time_point when) { return when.time_since_epoch() / step; }

  std::map<std::string, counter> ways_;
  std::map<device_id, attempt> attempts_; ///< The latest of each device.
};

} // namespace ringmaster
