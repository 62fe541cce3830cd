#include "tools/launch/program_processes.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/launchers/launched_process.hpp"
#include "tools/launch/node_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <unistd.h>

namespace ringmaster::launch {

namespace {

using variables = std::vector<std::pair<std::string, std::string>>;

/// Includes the configuration of coordinator and nodes.
variables with_configuration(const command_line& line, variables result, bool on_this_host) {
  if (!line.conf.empty())
    result.push_back({"RINGMASTER_CONF", std::filesystem::absolute(line.conf).string()});
  if (const auto keys = line.keys_for(on_this_host); !keys.empty())
    result.push_back({"RINGMASTER_OPTIONS", fmt::format("{}", fmt::join(keys, "\n"))});
  return result;
}

/// The environment of the program. A node on another host may lose its connection and join again; one on this host is
/// lost with its process.
variables environment_of_client(const command_line& line, const std::string& address, bool nodes_return) {
  variables result{
    {"RINGMASTER_COORDINATOR", address}, {"RINGMASTER_RUNNING_COORDINATOR", address}, {"RINGMASTER_JOB", line.job}};
  if (!nodes_return)
    result.push_back({"RINGMASTER_NODES_RETURN", "no"});
  return with_configuration(line, std::move(result), true);
}

variables environment_of(const command_line& line, const rank_place& place, size_t world_size,
                         const std::string& address) {
  return with_configuration(line,
                            {{"RINGMASTER_COORDINATOR", address},
                             {"RINGMASTER_JOB", line.job},
                             {"RINGMASTER_JOIN_TIMEOUT", fmt::format("{}ms", line.timeout.count())},
                             {"RINGMASTER_RANK", std::to_string(place.rank)},
                             {"RINGMASTER_WORLD_SIZE", std::to_string(world_size)},
                             {"RINGMASTER_LOCAL_RANK", std::to_string(place.local_rank)}},
                            place.local);
}

/// The program keeps the terminal, and with it Ctrl-C and Ctrl-Z.
child_spec in_our_group(std::vector<std::string> arguments, variables environment) {
  return {.arguments = std::move(arguments),
          .environment = std::move(environment),
          .input = child_spec::input_kind::inherited,
          .output = child_spec::output_kind::inherited,
          .own_group = false};
}

child_spec spec_of(const command_line& line, const rank_place& place, size_t world_size, const std::string& address) {
  auto told = environment_of(line, place, world_size, address);
  std::error_code ignored;
  auto here = std::filesystem::current_path(ignored).string();
  auto result = place.local ? in_our_group(line.program, std::move(told))
                            : in_our_group(remote_rank_command(line, place, told, here), {});
  if (!place.local) {
    result.input = child_spec::input_kind::pipe; // closing it stops the rank
    result.first_line = line.first_lines(place.host);
  } else if (place.rank != 0)
    result.input = child_spec::input_kind::none;
  if (line.tags_output)
    result.output = child_spec::output_kind::pipes;
  return result;
}

} // namespace

caf::error program_processes::start(process_watch& watch, const command_line& line,
                                    const std::vector<rank_place>& ranks, const std::string& address,
                                    bool nodes_return) {
  if (ranks.empty()) {
    auto spec = in_our_group(line.program, environment_of_client(line, address, nodes_return));
    spec.unset = rank_variables(); // the program is not a rank of an outer launcher; it may be a launcher itself
    TRY(client, watch.start("program", spec, watched_process::output_use::shown));
    processes_.push_back({*client, false, "program"});
    return caf::none;
  }
  for (auto& place : ranks) {
    TRY(rank, watch.start(fmt::format("rank {}", place.rank), spec_of(line, place, ranks.size(), address),
                          watched_process::output_use::tagged));
    processes_.push_back({*rank, !place.local, place_text(place)});
  }
  return caf::none;
}

size_t program_processes::running_count() const {
  return static_cast<size_t>(std::count_if(processes_.begin(), processes_.end(),
                                           [](auto& x) { return x.what->running(); }));
}

void program_processes::signal(int number) {
  for (auto& x : processes_)
    if (!x.by_ssh)
      x.what->signal(number);
    else if (number != SIGUSR1 && number != SIGUSR2)
      x.what->stop();
}

void program_processes::kill() {
  for (auto& x : processes_)
    x.what->signal(SIGKILL);
}

std::vector<watched_process*> program_processes::never_exiting() const {
  std::vector<watched_process*> result;
  for (auto& x : processes_)
    if (x.what->is_paused() || (x.what->running() && !x.joined && first_failure_ != 0))
      result.push_back(x.what);
  return result.size() == running_count() && result.size() < processes_.size() ? result
                                                                               : std::vector<watched_process*>{};
}

bool program_processes::waits_for_remote() const {
  return running_count() < processes_.size() && std::ranges::all_of(processes_, [](auto& x) {
           return !x.what->running() || x.by_ssh || x.what->is_paused();
         });
}

void program_processes::check_for_paused() {
  for (auto& x : processes_)
    if (x.by_ssh)
      x.what->nudge();
}

std::vector<uint32_t> program_processes::running_by_ssh() const {
  std::vector<uint32_t> result;
  for (uint32_t rank = 0; rank < processes_.size(); ++rank)
    if (processes_[rank].by_ssh && processes_[rank].what->running())
      result.push_back(rank);
  return result;
}

std::string program_processes::others_text() const {
  const auto others = running_count();
  return others == 0 ? "" : others == 1 ? "; 1 other goes on" : fmt::format("; {} others go on", others);
}

void program_processes::notice(const std::vector<std::string>& lines) {
  for (auto& line : lines) {
    const auto blank = line.find(' ');
    const auto rank = blank == std::string::npos ? SIZE_MAX : std::strtoull(line.c_str() + blank, nullptr, 10);
    if (rank >= processes_.size())
      continue;
    processes_[rank].finalized |= line.starts_with("finalized ");
    processes_[rank].was_lost |= line.starts_with("lost ");
  }
}

std::vector<std::string> program_processes::early_ends() {
  constexpr int status_of_early_end = 1;
  std::vector<std::string> result;
  for (auto& x : processes_) {
    if (x.what->running() || !x.what->status()->success() || !x.was_lost || x.finalized)
      continue;
    x.finalized = true; // reported once
    if (first_failure_ == 0)
      first_failure_ = status_of_early_end;
    result.push_back(fmt::format("{} exited with status 0 without finalize, while others were at work{}", x.place,
                                 others_text()));
  }
  return result;
}

std::vector<std::string> program_processes::failures() {
  std::vector<std::string> result;
  for (auto& x : processes_) {
    if (x.what->running() || std::exchange(x.looked_at, true) || x.what->status()->success())
      continue;
    if (first_failure_ == 0)
      first_failure_ = x.what->status()->shell_status();
    result.push_back(fmt::format("{} {}{}", x.place, x.what->describe_end(), others_text()));
  }
  return result;
}

std::vector<std::string> program_processes::ended() {
  std::vector<std::string> result;
  for (size_t rank = 0; rank < processes_.size(); ++rank)
    if (auto& x = processes_[rank]; !x.what->running() && !std::exchange(x.reported, true))
      result.push_back(fmt::format("{}:its process {}", rank, x.what->describe_end()));
  return result;
}

std::optional<int> program_processes::status() const {
  return !started() || running() ? std::nullopt : std::optional{first_failure_};
}

namespace fs = std::filesystem;

namespace {

bool is_file(const std::string& path) {
  std::error_code ec;
  return fs::is_regular_file(path, ec);
}

bool is_program(const std::string& path) {
  return is_file(path) && ::access(path.c_str(), X_OK) == 0;
}

caf::error not_found(const std::string& name, const std::string& where) {
  return invalid(fmt::format("there is no program {} {}", name, where));
}

} // namespace

caf::expected<std::string> find_program(const std::string& name, const std::string& search_path,
                                        const std::string& last_directory) {
  if (name.find('/') != std::string::npos) {
    if (is_program(name))
      return name;
    if (is_file(name))
      return make_error(errc::io_error, fmt::format("{} is not executable: chmod +x makes it so", name));
    return not_found(name, "at that path");
  }
  std::istringstream directories(search_path + ":" + last_directory);
  for (std::string directory; std::getline(directories, directory, ':');) {
    auto path = (directory.empty() ? std::string{"."} : directory) + "/" + name;
    if (is_program(path))
      return path;
  }
  return not_found(name, fmt::format("in PATH nor in {}", last_directory));
}

} // namespace ringmaster::launch
