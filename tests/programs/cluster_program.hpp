#pragma once

#include "actors/configuration/configuration.hpp"
#include "client/client.hpp"
#include "client/cluster.hpp"

#include <fmt/format.h>

#include <functional>
#include <string>

namespace ringmaster::test {

inline caf::error wrong(const std::string& text) {
  return make_error(errc::corrupt, text);
}

/// What a program under caf-run does with the cluster. Returns its exit status; it says why it is not 0.
inline int run_on_cluster(const char* name, const std::function<caf::error(client&)>& run) {
  configuration cfg;
  caf::error problem = cfg.read({}, std::nullopt);
  if (!problem) {
    caf::actor_system system{cfg};
    if (auto home = cluster::open(system, cfg.values())) {
      client host{system, (*home)->coordinator()};
      problem = run(host);
    } else {
      problem = home.error();
    }
  }
  if (problem)
    fmt::print("{}: {}\n", name, render(problem));
  return problem ? 1 : 0;
}

} // namespace ringmaster::test
