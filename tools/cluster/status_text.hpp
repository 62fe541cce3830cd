#pragma once

#include "messages/status.pb.h"
#include "runtime/journal/record_text.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace ringmaster {

struct status_line {
  tone how = tone::plain;
  std::string text;
};

/// For somebody who has to find out what a cluster waits for: its communicators with what is in flight, whom everybody
/// waits for and how far each rank is; its nodes; what is gone lately. `utc_offset`: of the clock on the reader's wall.
std::vector<status_line> status_text(const proto::ClusterStatus& status, const std::string& coordinator,
                                     std::chrono::seconds utc_offset);

/// Ranks that others wait for and that wait for nobody themselves.
std::vector<uint32_t> waited_for(const proto::CommunicatorStatus& x);

} // namespace ringmaster
