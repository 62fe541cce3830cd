#include "tools/cluster/log_options.hpp"

#include "messages/errc.hpp"
#include "tools/options/option_table.hpp"

#include <fmt/format.h>

namespace ringmaster {
namespace {

caf::expected<gpu_sim::Status> parse_outcome(const std::string& text) {
  for (auto [name, status] : {std::pair{"success", gpu_sim::SUCCESS}, {"failed", gpu_sim::FAILED},
                              {"in_progress", gpu_sim::IN_PROGRESS}})
    if (text == name)
      return status;
  return make_error(errc::invalid_argument, fmt::format("\"{}\" is none of success, failed, in_progress", text));
}

caf::error check(const log_options& opts) {
  if (opts.dir.empty())
    return make_error(errc::invalid_argument, "the journal's directory is missing: ringmaster log DIR [options]");
  if (!opts.trace.empty() && (opts.json || opts.follow))
    return make_error(errc::invalid_argument,
                      fmt::format("--trace writes a file and ends, so it does not go with {}",
                                  opts.json ? "--json" : "--follow"));
  if (opts.json && opts.relative)
    return make_error(errc::invalid_argument, "--relative is for people, so it does not go with --json");
  return caf::none;
}

} // namespace

caf::expected<log_options> parse_log_options(std::span<const std::string> args) {
  log_options opts;
  option_table table{"log"};
  table.positional([&opts](const std::string& text) -> caf::error {
    if (!opts.dir.empty())
      return make_error(errc::invalid_argument,
                        fmt::format("one directory at a time: '{}' and '{}' were given", opts.dir.string(), text));
    opts.dir = text;
    return caf::none;
  });
  table.number("--communicator", opts.filter.communicator, 0);
  table.number("--device", opts.filter.device, 0);
  table.number("--last", opts.filter.last, 1);
  table.word("--kind", opts.filter.kind, {record_kinds().begin(), record_kinds().end()});
  table.parsed("--outcome", opts.filter.outcome, parse_outcome);
  table.text("--trace", opts.trace);
  table.flag("--json", opts.json);
  table.flag("--relative", opts.relative);
  table.flag("--follow", opts.follow);
  if (auto problem = table.read(args))
    return problem;
  opts.help = table.help();
  if (!opts.help)
    if (auto problem = check(opts))
      return problem;
  return opts;
}

const std::string_view log_usage = R"(ringmaster log DIR [options]

Says what happened: lists the journal in the directory DIR, oldest first. The process that writes it may be
running, have ended or have been killed.

  --communicator N   only what belongs to communicator N
  --device N|0xN     only what names the device
  --kind KIND        coordinator, node, device, communicator, epoch, operation, rank, checkpoint, call,
                     command, fault
  --outcome O        success, failed or in_progress: only operations that stand so now, and what ended so: commands,
                     calls that were refused, communicators that were aborted
  --last N           only the latest N of these
  --relative         times since the first record shown, not of the day
  --json             one JSON object a line
  --trace FILE       write a trace to FILE, for ui.perfetto.dev or chrome://tracing
  --follow           go on with what is written from now on, until interrupted
  --help             this text
)";

} // namespace ringmaster
