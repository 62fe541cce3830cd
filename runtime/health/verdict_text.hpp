#pragma once

#include "messages/verdict.pb.h"

#include <string>
#include <string_view>

namespace ringmaster {

/// The one text of a verdict: in errors, logs, status and journal. Pure.

/// "crashed", "called_else", ...: for programs and tables.
std::string_view name_of(proto::Verdict::Kind kind);

/// What happened, without what was done: "rank 2 (device 0x3, node-2 on hostb, pid 812) crashed: its process has
/// exited; all_reduce #17 was at round 3 of 6: ranks 0, 1 waited for rank 2". Calls that fail by it have this in their
/// errors.
std::string finding_of(const proto::Verdict& x);

/// The finding and what was done: "... The group goes on in epoch 2 with 3 ranks; operation #17 runs again."
std::string text_of(const proto::Verdict& x);

} // namespace ringmaster
