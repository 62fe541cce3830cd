#pragma once

#include "runtime/reduction/reduction.hpp"
#include "tools/options/option_table.hpp"

#include <string>

namespace ringmaster {

/// What needs no factors, for which no command has an option. Errors: invalid_argument, naming what there is.
caf::expected<gpu_sim::ReduceOp> parse_plain_reduce_op(const std::string& text);

/// "sum", "prod", ...: their names.
std::vector<std::string> plain_reduce_ops();

/// --op.
template <class Target>
option& add_reduce_op(option_table& table, Target& target) {
  return table.parsed("--op", target, parse_plain_reduce_op)
    .says("OP", "{words}")
    .offers(plain_reduce_ops())
    .otherwise("sum");
}

} // namespace ringmaster
