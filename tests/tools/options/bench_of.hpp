#pragma once

#include "tools/bench/bench_options.hpp"
#include "tools/options/option_table.hpp"

namespace ringmaster::test {

using arguments = std::vector<std::string>;

/// What `ringmaster bench` makes of the arguments.
inline caf::expected<bench_options> bench_of(const arguments& args) {
  bench_arguments read;
  option_table table{"ringmaster bench"};
  read.add_to(table);
  if (auto problem = table.read(args))
    return problem;
  return read.options();
}

} // namespace ringmaster::test
