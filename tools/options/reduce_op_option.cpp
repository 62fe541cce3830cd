#include "tools/options/reduce_op_option.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringmaster {

std::vector<std::string> plain_reduce_ops() {
  std::vector<std::string> result;
  for (auto op : {gpu_sim::SUM, gpu_sim::PROD, gpu_sim::MIN, gpu_sim::MAX, gpu_sim::AVG})
    result.emplace_back(name_of(op));
  return result;
}

caf::expected<gpu_sim::ReduceOp> parse_plain_reduce_op(const std::string& text) {
  auto op = parse_reduce_op(text);
  if (op && *op == gpu_sim::PREMUL_SUM)
    return invalid(fmt::format("\"{}\" needs factors, for which there is no option", text));
  if (!op)
    return invalid(fmt::format("\"{}\" is none of {}", text, fmt::join(plain_reduce_ops(), ", ")));
  return op;
}

} // namespace ringmaster
