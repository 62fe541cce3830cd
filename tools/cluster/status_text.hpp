#pragma once

#include "messages/status.pb.h"
#include "runtime/journal/record_text.hpp"
#include "tools/console/page_format.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace ringmaster {

struct status_line {
  tone how = tone::plain;
  std::string text;
};

/// The state of a cluster: its communicators with operations in flight, the ranks that others wait for and the progress
/// of each rank; its nodes; recent losses. `utc_offset`: of the reader's time zone. Lines may be wider than the page.
std::vector<status_line> status_text(const proto::ClusterStatus& status, const std::string& coordinator,
                                     std::chrono::seconds utc_offset, const page_format& page);

/// Ranks that others wait for and that do not wait themselves.
std::vector<uint32_t> waited_for(const proto::CommunicatorStatus& x);

/// Lines about a communicator: its operations in flight, the ranks that others wait for, and a table of its ranks. A
/// narrow page leaves out the columns queued, late, device, received and where, in this order.
void add_communicator(const proto::CommunicatorStatus& x, const proto::ClusterInfo& cluster, const page_format& page,
                      std::vector<status_line>& out);

/// "4.2 s", "12 min 5 s", "3 h 4 min", "2 d 5 h"
std::string age_text(uint64_t ns);

} // namespace ringmaster
