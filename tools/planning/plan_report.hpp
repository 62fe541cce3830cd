#pragma once

#include "planner/search/plan_outcome.hpp"
#include "tools/console/page_format.hpp"

#include <string>

namespace ringmaster {

std::string report_of(const training::plan_outcome& x, const page_format& page = {});
std::string json_of(const training::plan_outcome& x);
/// One line per plan: the best, then the front.
std::string csv_of(const training::plan_outcome& x);

} // namespace ringmaster
