#include "tools/launch/command_line.hpp"

#include "messages/errc.hpp"
#include "tools/launch/hostfile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace ringmaster::launch {

const char* const usage = R"(usage: caf-run --local N [OPTION...] [--] PROGRAM [ARGUMENT...]
       caf-run --hostfile FILE [OPTION...] [--] PROGRAM [ARGUMENT...]

Starts a coordinator here and nodes here or on other hosts, waits until all have joined, runs PROGRAM with
RINGMASTER_COORDINATOR=HOST:PORT in its environment, and stops everything when PROGRAM has ended.

  --local N              N nodes on this host
  --hostfile FILE        one node a line: HOST [slots=DEVICES] [name=NAME]; # begins a comment
  --devices-per-node K   devices of a node that has no slots= (default 2)
  --port P               the coordinator's TCP port (default 0: any that is free)
  --timeout T            how long the nodes may take to join, such as 500ms, 30s or 2min (default 30s)
  --conf FILE            configuration of the coordinator and the nodes, at the same path on every host
  --journal DIR          where the coordinator keeps its operation log
  --address HOST         where other hosts reach this one (default: its host name)
  --binary PATH          the ringmaster program (default: beside caf-run)
  --remote-binary PATH   the same on the other hosts (default: the same path)
  --ssh PROGRAM          starts a node on another host (default ssh)

Each line that the coordinator or a node writes goes to standard error after its name. The standard streams of
PROGRAM are its own. SIGINT, SIGTERM, SIGHUP and SIGQUIT go to PROGRAM; the second one goes to everything.

Exit status: PROGRAM's own, or 128 + n if signal n ended it; 125 if the cluster did not come up; 126 or 127 if
PROGRAM cannot be run or is not there.
)";

namespace {

caf::error wrong(std::string text) {
  return make_error(errc::invalid_argument, std::move(text));
}

template <class Number>
caf::error read_number(const std::string& option, const std::string& text, uint32_t low, uint32_t high,
                       Number& result) {
  uint32_t number = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (ec != std::errc{} || end != text.data() + text.size() || number < low || number > high)
    return wrong(fmt::format("{} wants a number from {} to {}, not '{}'", option, low, high, text));
  result = static_cast<Number>(number);
  return caf::none;
}

/// Reads one option into `line`. Nothing where there is no such option.
std::optional<caf::error> read_option(const std::string& option, const std::string& value, command_line& line) {
  struct text_option {
    std::string_view name;
    std::string command_line::*member;
  };
  static constexpr text_option text_options[] = {
    {"--hostfile", &command_line::hostfile}, {"--conf", &command_line::conf},
    {"--journal", &command_line::journal},   {"--address", &command_line::address},
    {"--binary", &command_line::binary},     {"--remote-binary", &command_line::remote_binary},
    {"--ssh", &command_line::ssh},
  };
  for (auto& known : text_options) {
    if (known.name != option)
      continue;
    line.*known.member = value;
    return value.empty() ? wrong(fmt::format("{} wants a value", option)) : caf::error{};
  }
  if (option == "--local")
    return read_number(option, value, 1, max_nodes, line.local_nodes);
  if (option == "--devices-per-node")
    return read_number(option, value, 1, node_place::max_devices, line.devices_per_node);
  if (option == "--port")
    return read_number(option, value, 0, 65535, line.port);
  if (option == "--timeout") {
    auto duration = parse_duration(value);
    if (!duration)
      return wrong(fmt::format("--timeout: {}", render(duration.error())));
    line.timeout = *duration;
    return caf::error{};
  }
  return std::nullopt;
}

caf::error check_whole(const command_line& line) {
  if ((line.local_nodes > 0) == !line.hostfile.empty())
    return wrong("give either --local N or --hostfile FILE");
  if (line.program.empty())
    return wrong("no PROGRAM: name what to run after the options, such as caf-run --local 2 -- ./my_program");
  return caf::none;
}

} // namespace

caf::expected<std::chrono::milliseconds> parse_duration(const std::string& text) {
  uint32_t number = 0; // 49 days in milliseconds, 8000 years in minutes: it cannot overflow below.
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit(end, text.data() + text.size() - end);
  if (ec == std::errc{} && number > 0) {
    if (unit == "ms")
      return std::chrono::milliseconds{number};
    if (unit == "s")
      return std::chrono::seconds{number};
    if (unit == "min")
      return std::chrono::minutes{number};
  }
  return wrong(fmt::format("'{}' is not a duration; write 500ms, 30s or 2min", text));
}

caf::expected<command_line> parse_command_line(const std::vector<std::string>& arguments) {
  command_line line;
  size_t i = 0;
  for (; i < arguments.size() && arguments[i].rfind('-', 0) == 0; ++i) {
    if (arguments[i] == "--") {
      ++i;
      break;
    }
    if (arguments[i] == "--help" || arguments[i] == "-h") {
      line.help = true;
      return line;
    }
    // Both `--port 7000` and `--port=7000`.
    auto equals = std::min(arguments[i].find('='), arguments[i].size());
    auto option = arguments[i].substr(0, equals);
    auto joined = equals < arguments[i].size();
    auto absent = !joined && i + 1 == arguments.size();
    auto value = joined ? arguments[i].substr(equals + 1) : absent ? std::string{} : arguments[i + 1];
    auto err = read_option(option, value, line);
    if (!err)
      return wrong(fmt::format("there is no option {}; caf-run --help names them all", option));
    if (*err)
      return absent ? wrong(fmt::format("{} wants a value", option)) : *err;
    i += joined ? 0 : 1;
  }
  line.program.assign(arguments.begin() + static_cast<std::ptrdiff_t>(std::min(i, arguments.size())), arguments.end());
  if (auto err = check_whole(line))
    return err;
  return line;
}

} // namespace ringmaster::launch
