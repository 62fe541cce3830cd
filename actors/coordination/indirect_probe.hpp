#pragma once

#include <functional>
#include <string>

namespace ringmaster {

class coordinator_state;

/// Whether the process of a node that does not answer the coordinator lives: other nodes ask it, each over its own
/// connection (the indirect probe of SWIM: Das, Gupta, Motivala, 2002). A process that was killed or stopped answers
/// none of them, one behind a cut link answers all. `then` is called once, within 100 ms; with false at once if no
/// other node can be asked.
void probe_by_others(coordinator_state& coordinator, const std::string& node, std::function<void(bool lives)> then);

} // namespace ringmaster
