#pragma once

#include "planner/failures/failure_findings.hpp"
#include "runtime/text/json_field.hpp"
#include "tools/console/page_format.hpp"

#include <string>

namespace ringmaster {

/// The best way to recover, for example "restart, 16 spares: wait".
std::string best_way_text(const training::failure_findings& found);

std::string report_of(const training::failure_findings& found, const page_format& page = {});
/// One object, where a value is expected.
json_value json_of(const training::failure_findings& found);

} // namespace ringmaster
