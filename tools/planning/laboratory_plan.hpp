#pragma once

#include "tools/console/page_format.hpp"
#include "training/search/strategy_search.hpp"

#include <string>

namespace ringmaster {

/// What was planned for, under a laboratory's costs.
struct search_question {
  const training::cost_model* costs = nullptr;
  uint32_t ranks = 0, layers = 0;
  uint64_t global_batch = 0;
};

std::string report_of(const search_question& asked, const training::search_outcome& found,
                      const page_format& page = {});
std::string json_of(const search_question& asked, const training::search_outcome& found);

} // namespace ringmaster
