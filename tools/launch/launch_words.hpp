#pragma once

#include "tools/processes/process_watch.hpp"

#include <chrono>
#include <string>

namespace ringmaster::launch {

/// Prints a line "caf-run: TEXT" to standard error.
void say(const std::string& text);

/// "0.5 s"
std::string in_seconds(std::chrono::milliseconds duration);

/// Whether the process exists and has exited.
bool ended(const watched_process* process);

/// Null if the process cannot be started, which is then reported.
watched_process* start_or_say(process_watch& watch, const std::string& name, child_spec spec,
                              watched_process::output_use use = watched_process::output_use::shown);

} // namespace ringmaster::launch
