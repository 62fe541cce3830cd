#include "tools/log_options.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace ringmaster {
namespace {

caf::error wrong(std::string_view option, std::string_view value, std::string_view allowed) {
  return make_error(errc::invalid_argument, fmt::format("{} is '{}', but must be {}", option, value, allowed));
}

// Decimal, or hexadecimal behind 0x as devices are printed.
caf::expected<uint64_t> parse_number(std::string_view option, std::string_view text, uint64_t min) {
  auto digits = text;
  auto base = 10;
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    digits.remove_prefix(2);
    base = 16;
  }
  uint64_t value = 0;
  auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (digits.empty() || ec != std::errc{} || end != digits.data() + digits.size() || value < min)
    return wrong(option, text, fmt::format("a number from {}, such as 3 or 0x3", min));
  return value;
}

caf::error set_value(log_options& opts, std::string_view option, const std::string& value) {
  if (option == "--communicator" || option == "--device" || option == "--last") {
    auto number = parse_number(option, value, option == "--last" ? 1 : 0);
    if (!number)
      return std::move(number.error());
    if (option == "--communicator")
      opts.filter.communicator = communicator_id{*number};
    else if (option == "--device")
      opts.filter.device = device_id{*number};
    else
      opts.filter.last = *number;
  } else if (option == "--kind") {
    auto kinds = record_kinds();
    if (std::find(kinds.begin(), kinds.end(), value) == kinds.end())
      return wrong(option, value, fmt::format("one of {}", fmt::join(kinds, ", ")));
    opts.filter.kind = value;
  } else if (option == "--outcome") {
    if (value != "success" && value != "failed" && value != "in_progress")
      return wrong(option, value, "one of success, failed, in_progress");
    opts.filter.outcome = value == "success"  ? gpu_sim::SUCCESS
                          : value == "failed" ? gpu_sim::FAILED
                                              : gpu_sim::IN_PROGRESS;
  } else {
    if (value.empty())
      return wrong(option, value, "the name of a file");
    opts.trace = value;
  }
  return caf::none;
}

bool takes_value(std::string_view option) {
  constexpr std::string_view all[] = {"--communicator", "--device", "--kind", "--last", "--outcome", "--trace"};
  return std::find(std::begin(all), std::end(all), option) != std::end(all);
}

bool set_flag(log_options& opts, std::string_view option) {
  auto* flag = option == "--json"       ? &opts.json
               : option == "--relative" ? &opts.relative
               : option == "--follow"   ? &opts.follow
                                        : nullptr;
  if (flag != nullptr)
    *flag = true;
  return flag != nullptr;
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
  for (size_t i = 0; i < args.size(); ++i) {
    std::string_view arg = args[i];
    if (arg == "--help" || arg == "-h") {
      opts.help = true;
      return opts;
    }
    auto option = arg.substr(0, arg.find('=')); // "--last 3" or "--last=3"
    if (arg.starts_with("-") && takes_value(option)) {
      auto inside = option.size() < arg.size();
      if (!inside && i + 1 == args.size())
        return make_error(errc::invalid_argument, fmt::format("{} needs a value; see ringmaster log --help", option));
      auto value = inside ? std::string{arg.substr(option.size() + 1)} : args[++i];
      if (auto err = set_value(opts, option, value))
        return err;
    } else if (arg.starts_with("-")) {
      if (!set_flag(opts, arg))
        return make_error(errc::invalid_argument,
                          fmt::format("there is no option '{}'; see ringmaster log --help", arg));
    } else if (!opts.dir.empty()) {
      return make_error(errc::invalid_argument,
                        fmt::format("one directory at a time: '{}' and '{}' were given", opts.dir.string(), arg));
    } else {
      opts.dir = std::string{arg};
    }
  }
  if (auto err = check(opts))
    return err;
  return opts;
}

const std::string_view log_usage = R"(ringmaster log DIR [options]

Says what happened: lists the journal in the directory DIR, oldest first. The process that writes it may be
running, have ended or have been killed.

  --communicator N   only what belongs to communicator N
  --device N|0xN     only what names the device
  --kind KIND        coordinator, node, device, communicator, epoch, operation, rank, checkpoint, command, fault
  --outcome O        success, failed or in_progress: only operations that stand so now, and commands that ended so
  --last N           only the latest N of these
  --relative         times since the first record shown, not of the day
  --json             one JSON object a line
  --trace FILE       write a trace to FILE, for ui.perfetto.dev or chrome://tracing
  --follow           go on with what is written from now on, until interrupted
  --help             this text
)";

} // namespace ringmaster
