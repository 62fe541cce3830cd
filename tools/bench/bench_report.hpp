#pragma once

#include "tools/bench/bench.hpp"
#include "tools/clients/free_devices.hpp"
#include "tools/console/streamed_table.hpp"

#include <string>

namespace ringmaster {

/// The columns of nccl-tests, and p50, p99 and the part of the memory's limit. A narrow page leaves out root, redop,
/// type (which the lines above the table have), p50, p99, limit, count and algbw, in this order.
class bench_table {
public:
  /// Refers to the options.
  bench_table(const bench_options& x, const page_format& page);

  /// What is measured, where the ranks are, and the heads of the columns.
  std::string head(const rank_layout& layout) const;
  std::string row(const bench_row& row) const;
  /// A comment: "# every result was right".
  std::string remark(const std::string& text) const;

private:
  const bench_options& options_;
  page_format page_;
  streamed_table table_;
};

/// The row as an object of JSON, with "layout", the summary, and "ranks": a list of {"rank", "device", "node", "host"}.
std::string json_row(const bench_options& x, const bench_row& row, const rank_layout& layout);

} // namespace ringmaster
