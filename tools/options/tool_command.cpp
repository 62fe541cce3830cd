#include "tools/options/tool_command.hpp"

#include "messages/errc.hpp"
#include "runtime/text/version_text.hpp"
#include "tools/console/whole_output.hpp"
#include "tools/options/help_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

namespace {

/// Whether the command line or the configuration is wrong, whatever the files and devices are like.
bool is_of_usage(const caf::error& problem) {
  auto code = code_of(problem);
  return code == errc::invalid_argument || code == errc::invalid_config;
}

} // namespace

option_table tool_command::table() const {
  option_table result{full_name()};
  make()->declare(result);
  return result;
}

int tool_command::run(std::span<const std::string> args, std::FILE* out, std::FILE* err) const {
  auto inner = std::find_if(below.begin(), below.end(),
                            [&](auto& x) { return !args.empty() && x.last_word() == args.front(); });
  if (inner != below.end())
    return inner->run(args.subspan(1), out, err);
  return with_whole_output(full_name(), out, err, failed_status, [&] { return run_call(args, out, err); });
}

int tool_command::run_call(std::span<const std::string> args, std::FILE* out, std::FILE* err) const {
  auto failed = [&](const caf::error& problem) {
    std::fflush(out);
    fmt::print(err, "{}: {}\n", full_name(), render(problem));
    return is_of_usage(problem) ? usage_status : failed_status;
  };
  auto call = make();
  option_table taken{full_name()};
  call->declare(taken);
  if (auto problem = taken.read(args))
    return failed(problem);
  if (taken.help() || taken.version()) {
    fmt::print(out, "{}",
               taken.help() ? help_text(taken, below, taken.help_all() ? help_extent::all : help_extent::common)
                            : version_text(full_name()));
    return exit_ok;
  }
  if (auto go_on = call->configure(taken); !go_on || !*go_on)
    return go_on ? exit_ok : failed(go_on.error());
  if (auto problem = call->check())
    return failed(problem);
  auto status = call->run({out, err});
  return status ? *status : failed(status.error());
}

} // namespace ringmaster
