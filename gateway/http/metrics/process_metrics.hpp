#pragma once

#include "gateway/http/metrics/metric_page.hpp"

namespace ringmaster::gateway {

/// Memory, processor time, descriptors and start of this process, with the names that Prometheus gives them.
void write_process(metric_page& page);

} // namespace ringmaster::gateway
