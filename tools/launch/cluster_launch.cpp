#include "tools/launch/cluster_launch.hpp"

#include "tools/launch/node_losses.hpp"

#include "messages/errc.hpp"
#include "runtime/launchers/launched_process.hpp"
#include "runtime/text/endpoint.hpp"
#include "runtime/text/own_address.hpp"
#include "tools/launch/node_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace ringmaster::launch {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds port_file_poll{5};
/// `ringmaster info` has the same limit and reports more, so it may exceed the limit a little.
constexpr milliseconds info_margin{2000};
/// How long others may take to fail after the first failure, so that one message names them all.
constexpr milliseconds settle{250};

auto now() {
  return process_watch::clock::now();
}

uint16_t read_port(const std::string& file) {
  uint32_t port = 0;
  std::ifstream{file} >> port;
  return port <= 65535 ? static_cast<uint16_t>(port) : 0;
}

} // namespace

cluster_launch::cluster_launch(command_line line, std::vector<node_place> nodes, std::vector<rank_place> ranks,
                               scratch_directory scratch, process_watch& watch)
  : line_(std::move(line)), places_(std::move(nodes)), ranks_(std::move(ranks)), scratch_(std::move(scratch)),
    watch_(watch), absences_(watch, line_), losses_(watch, line_, places_) {
  for (auto& x : places_)
    if (!x.local)
      remote_hosts_.push_back(x.host);
  for (auto& x : ranks_)
    if (!x.local)
      remote_hosts_.push_back(x.host);
}

int cluster_launch::run() {
  join_deadline_ = now() + line_.timeout;
  auto ran = start_coordinator(own_address()) && start_nodes() && await_joined() && start_gateway() && run_program();
  stop_all();
  if (ran)
    report_early_ends(); // the coordinator has noticed all exits by now
  program_.failures();   // consumes those of ranks that were killed here
  if (auto status = program_.status(); ran && status)
    return *status;
  return stop_signal_ != 0 ? 128 + stop_signal_ : failed_status;
}

/// The address at which all nodes reach the coordinator. On this host, its own name may resolve to 127.0.1.1.
std::string cluster_launch::own_address() const {
  if (!line_.address.empty())
    return listening_address(line_.address);
  if (all_local())
    return loopback_address();
  for (auto& host : remote_hosts_)
    if (auto address = own_address_towards({host.substr(host.find('@') + 1), 22}); address && !is_loopback(*address))
      return *address;
  return own_host_name();
}

/// The address at which the coordinator listens to be reached at `own`; empty: its default, 127.0.0.1. On other hosts a
/// name may resolve to addresses of both families.
std::string cluster_launch::listens_at(const std::string& own) const {
  if (all_local())
    return line_.address.empty() && own == "127.0.0.1" ? std::string{} : own;
  const bool is_ipv4 = own.find(':') == std::string::npos && is_own_address(own);
  return is_ipv4 ? "0.0.0.0" : any_address();
}

bool cluster_launch::start_coordinator(const std::string& host) {
  auto port_file = scratch_->path() + "/port";
  if (line_.coordinator_restarts > 0 && line_.journal.empty() && !line_.has_key("coordinator.store-dir")
      && !line_.has_key("journal.dir")) {
    auto made = scratch_directory::make();
    if (!made) {
      say(render(made.error()));
      return false;
    }
    store_.emplace(std::move(*made));
  }
  coordinator_ = run_coordinator(host, port_file);
  if (coordinator_ == nullptr)
    return false;
  uint16_t port = 0;
  // No event reports the file, so this polls.
  while (port == 0 && !ended(coordinator_) && stop_signal_ == 0 && now() < join_deadline_) {
    wait_until(std::min(join_deadline_, now() + port_file_poll), [&] { return ended(coordinator_); });
    port = read_port(port_file);
  }
  if (!line_.keeps_scratch)
    scratch_.reset();
  if (stop_signal_ != 0)
    return false;
  if (port == 0 || ended(coordinator_)) {
    say(ended(coordinator_) ? fmt::format("the coordinator {}", coordinator_->describe_end())
                            : fmt::format("the coordinator did not listen within {}", in_seconds(line_.timeout)));
    return false;
  }
  address_ = text_of(endpoint{host, port});
  host_ = host;
  line_.port = port;
  return true;
}

watched_process* cluster_launch::run_coordinator(const std::string& host, const std::string& port_file) {
  auto command = coordinator_command(line_, port_file, all_local(), listens_at(host));
  if (store_)
    command.push_back("--coordinator.store-dir=" + store_->path() + "/store");
  return start_or_say(
    watch_, "coordinator",
    {.arguments = std::move(command), .environment = {{"RINGMASTER_JOB", line_.job}}, .notices = true});
}

void cluster_launch::restart_coordinator() {
  if (!ended(coordinator_) || !may_restart_coordinator())
    return;
  ++restarts_;
  say(fmt::format("the coordinator {}; it is restarted, restart {} of {}", coordinator_->describe_end(), restarts_,
                  line_.coordinator_restarts));
  program_.notice(coordinator_->take_notices());
  if (auto* again = run_coordinator(host_, {}))
    coordinator_ = again;
}

bool cluster_launch::start_nodes() {
  for (auto& place : places_) {
    // ssh passes no signals on: a remote node stops at the end of its standard input.
    auto input = place.local ? child_spec::input_kind::none : child_spec::input_kind::pipe;
    auto* node = start_or_say(watch_, place.name,
                              {.arguments = node_command(line_, place, address_, all_local()),
                               .input = input,
                               .first_line = place.local ? std::string{} : line_.first_lines(place.host)});
    if (node == nullptr)
      return false;
    nodes_.push_back(node);
  }
  return true;
}

bool cluster_launch::await_joined() {
  if (places_.empty())
    return true; // ranks wait for each other
  auto left = std::chrono::ceil<milliseconds>(join_deadline_ - now());
  std::vector<std::string> names;
  for (auto& place : places_)
    names.push_back(place.name);
  info_ = start_or_say(watch_, "info",
                       {.arguments = info_command(line_, names, address_, std::max(left, milliseconds{1}))},
                       watched_process::output_use::kept);
  if (info_ == nullptr)
    return false;
  auto a_node_ended = [&] { return std::any_of(nodes_.begin(), nodes_.end(), ended); };
  wait_until(join_deadline_ + info_margin, [&] { return ended(info_) || ended(coordinator_) || a_node_ended(); });
  if (stop_signal_ != 0)
    return false;
  if (ended(info_) && info_->status()->success() && !a_node_ended())
    return true;
  if (a_node_ended())
    wait_until(now() + settle, [&] { return std::all_of(nodes_.begin(), nodes_.end(), ended); });
  if (ended(coordinator_))
    say(fmt::format("the coordinator {}", coordinator_->describe_end()));
  report_missing(missing_nodes_in(info_->kept_output()));
  return false;
}

/// A client of the program may connect at once, so this waits until it listens.
bool cluster_launch::start_gateway() {
  if (line_.gateway.empty())
    return true;
  auto directory = scratch_directory::make();
  if (!directory) {
    say(render(directory.error()));
    return false;
  }
  const auto ready_file = directory->path() + "/ready";
  gateway_ = start_or_say(watch_, "gateway", {.arguments = gateway_command(line_, address_, ready_file)});
  if (gateway_ == nullptr)
    return false;
  auto is_ready = [&] { return std::filesystem::exists(ready_file); };
  while (!is_ready() && !ended(gateway_) && stop_signal_ == 0 && now() < join_deadline_)
    wait_until(std::min(join_deadline_, now() + port_file_poll), [&] { return ended(gateway_); });
  if (is_ready() || stop_signal_ != 0)
    return stop_signal_ == 0;
  say(ended(gateway_) ? fmt::format("the gateway {}", gateway_->describe_end())
                      : fmt::format("the gateway did not listen within {}", in_seconds(line_.timeout)));
  return false;
}

/// Reports for each node that has not joined why.
void cluster_launch::report_missing(const std::set<std::string>& missing) {
  auto said = ended(coordinator_);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    auto& node = *nodes_[i];
    if (!ended(&node) && missing.count(node.name()) == 0)
      continue;
    said = true;
    if (ended(&node))
      say(fmt::format("{} did not join: it {}", place_text(node, places_[i]), node.describe_end()));
    else
      say(fmt::format("{} had not joined after {}{}", place_text(node, places_[i]), in_seconds(line_.timeout),
                      node.last_words().empty() ? ", and said nothing" : "; it said last: " + node.last_words()));
  }
  if (said)
    return;
  say(ended(info_) ? fmt::format("cannot tell who has joined: ringmaster info {}", info_->describe_end())
                   : fmt::format("cannot tell who has joined: ringmaster info did not answer within {}",
                                 in_seconds(line_.timeout + info_margin)));
}

bool cluster_launch::run_program() {
  earlier_orphans_ = watch_.orphans(); // such as an ssh that nodes share
  if (auto problem = program_.start(watch_, line_, ranks_, address_,
                                    !std::ranges::all_of(places_, &node_place::local))) {
    say(render(problem));
    return false;
  }
  await_ranks();
  while (program_.running() && now() < kill_at_) {
    restart_coordinator();
    report_lost();
    report_absent_ranks();
    if (!ranks_.empty() && !ended(coordinator_) && kill_at_ == time_point::max()) {
      absences_.add(program_.ended());
      absences_.look(address_);
    } else {
      absences_.stop(); // the coordinator has exited
    }
    kill_paused();
    check_paused_elsewhere();
    step(std::min({kill_at_, losses_.due(), kill_paused_at_, check_paused_at_, absences_.due()}));
    report_failed_ranks();
    report_early_ends();
  }
  report_lost();
  losses_.finish(nodes_, goes_on_text());
  if (program_.running())
    say(fmt::format("{} goes on after two signals: killing it", line_.program.front()));
  return true;
}

/// A single program's failure is in the exit status, and ranks that were asked to stop may fail.
void cluster_launch::report_failed_ranks() {
  for (auto& x : program_.failures())
    if (!ranks_.empty() && stop_signal_ == 0)
      say(x);
}

/// The coordinator knows which ranks have left their group.
void cluster_launch::report_early_ends() {
  if (ranks_.empty() || stop_signal_ != 0)
    return;
  program_.notice(coordinator_->take_notices());
  for (auto& x : program_.early_ends())
    say(x);
}

/// Waits for ranks on other hosts to join: a hanging ssh is not visible otherwise.
void cluster_launch::await_ranks() {
  std::vector<std::string> names;
  for (auto rank : program_.running_by_ssh())
    names.push_back(node_name_of_rank(rank));
  if (!names.empty())
    info_ = start_or_say(watch_, "info", {.arguments = info_command(line_, names, address_, line_.timeout)},
                         watched_process::output_use::kept);
}

/// A rank that has not joined is only reported: its program may do other work first.
void cluster_launch::report_absent_ranks() {
  if (ranks_.empty() || !ended(info_))
    return;
  const auto missing = missing_nodes_in(std::exchange(info_, nullptr)->kept_output());
  for (auto rank : program_.running_by_ssh())
    if (missing.count(node_name_of_rank(rank)) != 0) {
      say(fmt::format("{} has not joined after {}: {} or its program may hang", place_text(ranks_[rank]),
                      in_seconds(line_.timeout), line_.ssh));
      program_.set_not_joined(rank);
    }
}

/// The others have treated a paused rank as lost, or waited for it. It may still be continued for a while.
void cluster_launch::kill_paused() {
  const auto left = program_.never_exiting();
  if (left.empty()) {
    kill_paused_at_ = time_point::max();
    return;
  }
  if (kill_paused_at_ == time_point::max())
    kill_paused_at_ = now() + paused_limit;
  if (now() < kill_paused_at_)
    return;
  kill_paused_at_ = time_point::max();
  for (auto* each : left) {
    say(each->is_paused() ? paused_text(each->name())
                          : fmt::format("{} has not joined, and all others ended {} ago: killing it", each->name(),
                                        in_seconds(paused_limit)));
    each->signal(SIGKILL);
  }
}

/// Paused ranks on other hosts are found and killed there.
void cluster_launch::check_paused_elsewhere() {
  constexpr std::chrono::seconds look_every{1};
  if (!program_.waits_for_remote()) {
    check_paused_at_ = time_point::max();
    return;
  }
  if (check_paused_at_ != time_point::max() && now() < check_paused_at_)
    return;
  program_.check_for_paused();
  check_paused_at_ = now() + look_every;
}

void cluster_launch::report_lost() {
  if (kill_at_ != time_point::max())
    return losses_.finish(nodes_, goes_on_text()); // all are stopped now
  if (ended(coordinator_) && !may_restart_coordinator() && !std::exchange(coordinator_reported_, true))
    say(fmt::format("the coordinator {}; the program goes on", coordinator_->describe_end()));
  losses_.look(nodes_, ended(coordinator_) ? "" : address_, goes_on_text());
}

std::string cluster_launch::goes_on_text() const {
  return program_.running() ? "the program goes on" : "the program has ended";
}

/// Nodes stop before the coordinator, which then records that they left and not that they were lost.
void cluster_launch::stop_all() {
  stopping_ = true;
  if (info_ != nullptr)
    info_->signal(SIGKILL);
  absences_.stop();
  if (!program_.running())
    kill_at_ = time_point::max(); // it has exited, or never ran: the others get the full grace period
  program_.kill();
  wait_until(now() + grace, [&] { return !program_.running(); });
  // Orphans of the program may hold devices. They are killed before the nodes leave, so that the coordinator frees the
  // devices and does not report a loss.
  if (program_.started())
    watch_.end_orphans(earlier_orphans_);
  if (gateway_ != nullptr)
    stop({gateway_});
  stop(nodes_);
  if (coordinator_ != nullptr)
    stop({coordinator_});
}

void cluster_launch::stop(const std::vector<watched_process*>& processes) {
  auto all_ended = [&] { return std::all_of(processes.begin(), processes.end(), ended); };
  for (auto* process : processes)
    process->stop();
  for (auto deadline = now() + grace; !all_ended() && now() < std::min(deadline, kill_at_);)
    step(std::min(deadline, kill_at_));
  for (auto* process : processes)
    process->signal(SIGKILL);
  wait_until(now() + grace, all_ended);
}

bool cluster_launch::wait_until(time_point deadline, const std::function<bool()>& done) {
  while (!done()) {
    if (now() >= deadline || (stop_signal_ != 0 && !program_.started() && !stopping_))
      return false;
    step(deadline);
  }
  return true;
}

void cluster_launch::step(time_point deadline) {
  for (auto received : watch_.step(deadline))
    on_signal(received);
}

void cluster_launch::on_signal(process_watch::received_signal received) {
  if (received.number == SIGUSR1 || received.number == SIGUSR2) {
    program_.signal(received.number);
    return;
  }
  if (received.number == SIGTSTP)
    return watch_.suspend(); // otherwise processes outside of the terminal's group would treat the paused ones as lost
  auto first = stop_signal_ == 0;
  if (first)
    stop_signal_ = received.number;
  if (!received.from_terminal)
    program_.signal(received.number);
  if (first && !stopping_)
    return;
  // A second signal kills.
  for (auto* node : nodes_)
    node->signal(received.number);
  if (gateway_ != nullptr)
    gateway_->signal(received.number);
  if (coordinator_ != nullptr)
    coordinator_->signal(received.number);
  kill_at_ = stopping_ || kill_at_ != time_point::max() ? now() : now() + grace;
}

} // namespace ringmaster::launch
