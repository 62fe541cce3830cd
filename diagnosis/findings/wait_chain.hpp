#pragma once

#include "diagnosis/findings/wait_graph.hpp"

#include <vector>

namespace ringmaster::diagnosis {

/// The ranks that wait for the given ranks, directly in the call `at` or any other, or through ranks that do; numbers
/// in the graph, ascending, without the ranks themselves.
std::vector<uint32_t> victims_of(const wait_graph& graph, const std::vector<uint32_t>& ranks, uint32_t at,
                                 bool with_weak);

/// One of the longest of the shortest ways from waiting ranks to the given ones, at most `links_max` of its links: the
/// first ones and the last ones.
constexpr size_t links_max = 12;
std::vector<wait_link> chain_to(const wait_graph& graph, const std::vector<uint32_t>& ranks, uint32_t at,
                                bool with_weak);

} // namespace ringmaster::diagnosis
