#include "tools/clients/cluster_connection.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/launchers/launched_process.hpp"
#include "runtime/text/endpoint.hpp"
#include "tools/options/tool_command.hpp"

#include <fmt/format.h>

namespace ringmaster {

namespace {

/// Checks the environment; the configuration has been checked already.
caf::error check_variable(const options& opts) {
  auto where = coordinator_elsewhere(opts);
  auto read = parse_endpoint(where);
  if (where.empty() || read)
    return caf::none;
  return make_error(code_of(read.error()),
                    fmt::format("RINGMASTER_COORDINATOR in the environment: {}", render(read.error())));
}

} // namespace

caf::expected<coordinator_actor> coordinator_for(const char* command, caf::actor_system& system, const options& opts,
                                                 std::FILE* err) {
  auto where = coordinator_elsewhere(opts);
  if (where.empty())
    return invalid(fmt::format("which cluster? {} --join HOST:PORT, or RINGMASTER_COORDINATOR=HOST:PORT in the "
                               "environment, which caf-run sets",
                               command));
  RETURN_ERROR(check_variable(opts));
  auto found = connect(system, where, opts.node.join_timeout, opts.node.orphan_timeout);
  if (!found)
    end_at_once(command, found.error(), err);
  return found;
}

caf::expected<std::unique_ptr<cluster>> open_cluster(const char* command, caf::actor_system& system,
                                                     const options& opts, std::FILE* err) {
  RETURN_ERROR(check_variable(opts));
  auto result = cluster::open(system, opts);
  if (!result && !coordinator_elsewhere(opts).empty())
    end_at_once(command, result.error(), err);
  return result;
}

caf::error check_no_rank() {
  const auto launched = launched_process_of(process_environment(), 1);
  if (!launched || !*launched || (*launched)->world_size == 1)
    return caf::none;
  const auto& its = **launched;
  return invalid(fmt::format("this command calls for all ranks, and {} has started it as rank {} of {}: start it "
                             "once, under caf-run without --ranks, with --join, or alone. An empty RINGMASTER_RANK "
                             "in the environment means that it is not a rank",
                             its.launcher, its.rank, its.world_size));
}

void end_at_once(const char* command, const caf::error& problem, std::FILE* err) {
  fmt::print(err, "{}: {}\n", command, render(problem));
  std::fflush(nullptr);
  std::_Exit(exit_failed);
}

} // namespace ringmaster
