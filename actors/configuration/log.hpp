#pragma once

#include "runtime/configuration/options.hpp"

namespace ringmaster {

/// Sends what the actors log to standard error, from the configured level on. Calling it again changes the level.
void start_log(const options& opts);

} // namespace ringmaster
