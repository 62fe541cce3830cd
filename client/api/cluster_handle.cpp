#include "client/api/handles.hpp"

#include "messages/wire_ids.hpp"
#include "runtime/configuration/places.hpp"
#include "runtime/invariants/ensure.hpp"
#include "messages/version.hpp"
#include "runtime/text/version_text.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace ringmaster::api {

error public_error(const caf::error& problem) {
  ensure(static_cast<bool>(problem), "a failed call has an error");
  return {static_cast<errc>(wire_code(problem)), render(problem)};
}

expected<void> public_result(const caf::error& problem) {
  if (problem)
    return public_error(problem);
  return {};
}

device_info info_of(const gpu_sim::DeviceMetadata& x) {
  return {id_of(x), x.minmemaddr().value(), x.maxmemaddr().value(), x.place()};
}

std::vector<device_info> infos_of(const google::protobuf::RepeatedPtrField<gpu_sim::DeviceMetadata>& x) {
  std::vector<device_info> result;
  for (auto& each : x)
    result.push_back(info_of(each));
  return result;
}

expected<cluster> open_cluster(std::unique_ptr<configuration> config, uint32_t devices_min) {
  auto state = std::make_shared<cluster::state>();
  state->options = config->values();
  state->options.log.level = "warn"; // the program's own output is what its user reads
  state->options.device.count = std::max(state->options.device.count, devices_min);
  state->config = std::move(config);
  state->system = std::make_unique<caf::actor_system>(*state->config);
  auto home = ringmaster::cluster::open(*state->system, state->options);
  if (!home)
    return public_error(home.error());
  state->home = std::move(*home);
  return cluster{std::move(state)};
}

cluster::cluster(std::shared_ptr<state> internals) : state_(std::move(internals)) {}
cluster::cluster(cluster&&) noexcept = default;
cluster& cluster::operator=(cluster&&) noexcept = default;
cluster::~cluster() {
  ensure(!state_ || state_.use_count() == 1, "a cluster outlives its clients, communicators and memory");
}

expected<cluster> cluster::open(const std::vector<std::string>& arguments, bool read_configuration) {
  auto config = std::make_unique<configuration>();
  auto problem = config->read(arguments, read_configuration ? find_configuration() : std::nullopt);
  if (!problem)
    problem = config->check_remainder();
  if (problem)
    return public_error(problem);
  return open_cluster(std::move(config), 0);
}

expected<std::vector<device_info>> cluster::devices(uint32_t devices_min, std::chrono::nanoseconds within) {
  ringmaster::client calls{*state_->system, state_->home->coordinator()};
  auto found = calls.devices(devices_min, within);
  if (!found)
    return public_error(found.error());
  std::vector<device_info> result;
  for (auto& each : found->devices())
    result.push_back(info_of(each.metadata()));
  return result;
}

bool cluster::is_local() const {
  return static_cast<bool>(state_->home->root());
}

std::string program_arguments::value_of(std::string_view option) const {
  auto found = std::find_if(values.rbegin(), values.rend(), [&](auto& each) { return each.first == option; });
  return found == values.rend() ? std::string{} : found->second;
}

namespace {

constexpr int exit_failed = 1, exit_usage = 2;

int report(const std::string& message, int status) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, message.c_str());
  return status;
}

bool is_option(const std::string& text, const std::vector<std::string>& options) {
  return std::find(options.begin(), options.end(), text) != options.end();
}

/// Moves the program's own options with their values from `args` to the result.
expected<program_arguments> take_own(std::vector<std::string>& args, const std::vector<std::string>& own) {
  program_arguments result;
  std::vector<std::string> rest;
  for (size_t i = 0; i < args.size(); ++i) {
    const auto equals = args[i].find('=');
    const auto name = args[i].substr(0, equals);
    if (!is_option(name, own)) {
      rest.push_back(args[i]);
    } else if (equals != std::string::npos) {
      result.values.emplace_back(name, args[i].substr(equals + 1));
    } else if (i + 1 < args.size()) {
      result.values.emplace_back(name, args[++i]);
    } else {
      return error{errc::invalid_argument, name + " needs a value; --help lists the options"};
    }
  }
  args = std::move(rest);
  return result;
}

/// --help, --version and unknown options of a program without a cluster. None: it can run.
std::optional<int> answer_without_cluster(const std::vector<std::string>& args, const program_options& options) {
  for (auto& each : args) {
    if (each == "--version") {
      std::fputs(version_text(program_invocation_short_name).c_str(), stdout);
      return 0;
    }
    if (each == "--help" || each == "-h") {
      std::string text = std::string{"usage: "} + program_invocation_short_name;
      for (auto& own : options.own_options)
        text += " [" + own + " VALUE]";
      std::printf("%s\n\n%s\n", text.c_str(), options.about.c_str());
      return 0;
    }
    return report("\"" + each + "\" is no option here; --help lists them", exit_usage);
  }
  return std::nullopt;
}

} // namespace

int run_main(int argc, char** argv, const std::function<void(cluster&)>& body) {
  return run_main(argc, argv, program_options{}, [&](cluster* home, const program_arguments&) { body(*home); });
}

int run_main(int argc, char** argv, const program_options& options,
             const std::function<void(cluster* home, const program_arguments&)>& body) {
  std::vector<std::string> args(argv + std::min(argc, 1), argv + argc);
  auto own = take_own(args, options.own_options);
  if (!own)
    return report(own.error().message, exit_usage);
  try {
    if (!options.needs_cluster) {
      if (auto status = answer_without_cluster(args, options))
        return *status;
      body(nullptr, *own);
      return 0;
    }
    auto config = std::make_unique<configuration>();
    auto problem = config->read(std::move(args), find_configuration());
    if (!problem && config->cli_helptext_printed)
      return 0;
    if (!problem)
      problem = config->check_remainder();
    if (problem) // the command line or the file has a value that is not allowed, unless the file cannot be read
      return report(render(problem), code_of(problem) == errc::io_error ? exit_failed : exit_usage);
    auto home = open_cluster(std::move(config), options.devices_min);
    body(&home.value(), *own);
    return 0;
  } catch (const std::exception& problem) {
    return report(problem.what(), exit_failed);
  }
}

std::string library_version() {
  return std::string{ringmaster_version};
}

uint32_t protocol_number() {
  return protocol_version;
}

} // namespace ringmaster::api
