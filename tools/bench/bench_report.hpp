#pragma once

#include "tools/bench/bench.hpp"
#include "tools/clients/rank_layout.hpp"

#include <cstdio>

namespace ringmaster {

/// What is measured, how its ranks lie, and the heads of the columns.
void print_header(std::FILE* out, const bench_options& x, const rank_layout& layout);
void print_row(std::FILE* out, const bench_options& x, const bench_row& row);

/// The row as an object of JSON, with "layout", the summary, and "ranks": a list of {"rank", "device", "node", "host"}.
std::string json_row(const bench_options& x, const bench_row& row, const rank_layout& layout);

} // namespace ringmaster
