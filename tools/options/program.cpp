#include "tools/options/program.hpp"

#include "messages/errc.hpp"

#include <csignal>
#include <ctime>
#include <fmt/format.h>
#include <algorithm>

namespace ringmaster {

caf::error read_configuration(configuration& cfg, std::vector<std::string> args, const short_options& known,
                              std::map<std::string, std::string>& own) {
  std::vector<std::string> keys;
  for (size_t i = 0; i < args.size(); ++i) {
    auto equals = args[i].find('=');
    auto name = args[i].substr(0, equals);
    auto found = known.find(name);
    if (found == known.end()) {
      keys.push_back(args[i]);
      continue;
    }
    if (equals == std::string::npos && i + 1 == args.size())
      return make_error(errc::invalid_argument, fmt::format("{} needs a value", name));
    auto value = equals != std::string::npos ? args[i].substr(equals + 1) : args[++i];
    if (found->second.empty())
      own[name] = value;
    else
      keys.push_back(fmt::format("--{}={}", found->second, value));
  }
  if (auto problem = cfg.read(std::move(keys), "config/caf-application.conf"))
    return problem;
  return cfg.check_remainder();
}

bool wants_help(const std::vector<std::string>& args, const char* text) {
  auto wanted = std::any_of(args.begin(), args.end(), [](const auto& x) { return x == "--help" || x == "-h"; });
  if (wanted)
    fmt::print("{}", text);
  return wanted;
}

int report(const caf::error& problem, int status) {
  fmt::print(stderr, "ringmaster: {}\n", render(problem));
  return status;
}

namespace {

sigset_t ending_signals() {
  sigset_t result;
  sigemptyset(&result);
  for (auto x : {SIGTERM, SIGINT, SIGHUP})
    sigaddset(&result, x);
  return result;
}

} // namespace

void block_ending_signals() {
  auto signals = ending_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

int ending_signal() {
  auto signals = ending_signals();
  timespec now{0, 0};
  return std::max(sigtimedwait(&signals, nullptr, &now), 0);
}

} // namespace ringmaster
