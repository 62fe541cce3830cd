#pragma once

#include "tools/processes/process_watch.hpp"

#include <chrono>
#include <string>

namespace ringmaster::launch {

/// One line of caf-run's own.
void say(const std::string& text);

/// "0.5 s"
std::string in_seconds(std::chrono::milliseconds duration);

/// There is such a process, and it does not run any more.
bool ended(const watched_process* process);

/// Null: it cannot be started, which has been said.
watched_process* start_or_say(process_watch& watch, const std::string& name, child_spec spec,
                              watched_process::output_use use = watched_process::output_use::shown);

} // namespace ringmaster::launch
