#include "tests/programs/soak_cluster.hpp"
#include "tests/support/file_content.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace ringmaster::soak {

namespace {

/// -1: it runs, or was waited for before.
int status_of(pid_t process) {
  int status = 0;
  return ::waitpid(process, &status, WNOHANG) == process ? status : -1;
}

std::string end_text(int status) {
  return WIFSIGNALED(status) ? fmt::format("by signal {}", WTERMSIG(status))
                             : fmt::format("with status {}", WEXITSTATUS(status));
}

} // namespace

soak_cluster::soak_cluster(size_t nodes, const std::string& route, const pace& how_fast,
                           std::optional<soak_network> network, bool disk)
  : route_("--route.use=" + route), pace_(how_fast), scratch_(std::move(*launch::scratch_directory::make())),
    events_(scratch_.path() + "/events.log"), network_(std::move(network)) {
  const auto port_file = scratch_.path() + "/port";
  if (disk)
    disk_ = soak_disk::make(scratch_.path() + "/journal");
  coordinator_.emplace(start_coordinator());
  for (auto give_up = steady::now() + std::chrono::seconds{20}; port_ == 0 && steady::now() < give_up;) {
    std::ifstream{port_file} >> port_;
    std::this_thread::sleep_for(milliseconds{5});
  }
  if (port_ == 0) {
    fmt::print(stderr, "soak: the coordinator did not listen within 20 s: see {}/coordinator.log\n", scratch_.path());
    std::exit(1);
  }
  while (nodes_.size() < nodes)
    nodes_.push_back(start_node(nodes_.size()));
}

std::string soak_cluster::keep_logs() {
  if (disk_) { // which ends with this process
    std::error_code none;
    std::filesystem::copy(scratch_.path() + "/journal", scratch_.path() + "/journal-copy",
                          std::filesystem::copy_options::recursive, none);
  }
  return scratch_.keep();
}

soak_cluster::~soak_cluster() {
  calm();
  for (auto& x : nodes_)
    x.process.stop();
  coordinator_->process.stop();
}

launch::child_process soak_cluster::start(const std::string& name, std::vector<std::string> program,
                                          const std::vector<std::string>& arguments) {
  auto command = fmt::format("exec \"$0\" \"$@\" >> {}/{}.log 2>&1", scratch_.path(), name);
  std::vector<std::string> all{"sh", "-c", command};
  all.insert(all.end(), program.begin(), program.end());
  all.insert(all.end(), arguments.begin(), arguments.end());
  auto child = launch::child_process::start({.arguments = all, .output = launch::child_spec::output_kind::inherited});
  if (!child) {
    fmt::print(stderr, "soak: {} cannot be started\n", program.front());
    std::exit(1);
  }
  return std::move(*child);
}

soak_cluster::member soak_cluster::start_coordinator() {
  note("the coordinator starts");
  std::vector<std::string> command{"coordinator",
                                   "--port",
                                   std::to_string(port_),
                                   "--port-file",
                                   scratch_.path() + "/port",
                                   "--journal",
                                   scratch_.path() + "/journal",
                                   route_};
  if (network_)
    command.insert(command.end(), {"--host", "0.0.0.0"});
  return {"coordinator", start("coordinator", {RINGMASTER_PROGRAM}, std::move(command))};
}

void soak_cluster::fill_disk() {
  disk_->fill();
  full_until_ = steady::now() + pace_.full_for;
  note(fmt::format("the coordinator's disk is full for {} ms", pace_.full_for.count()));
  event_ = true;
  ++counts_.full_disks;
}

void soak_cluster::empty_disk() {
  disk_->empty();
  full_until_.reset();
  disk_empty_since_ = steady::now();
  note("the coordinator's disk has room again");
}

soak_cluster::member soak_cluster::start_node(size_t host) {
  auto name = fmt::format("node-{}", ++nodes_started_);
  note(name + " starts");
  // The coordinator may be stopped, and the cable out, several times while one joins.
  std::vector<std::string> program,
    command{"node", "--devices", "2", "--name", name, route_, "--node.join-timeout=90s", "--join", address()};
  if (network_) {
    program = network_->on_host(host);
    command.back() = fmt::format("{}:{}", soak_network::own_address(), port_);
    command.insert(command.end(), {"--listen-host", soak_network::address_of(host)});
  }
  program.emplace_back(RINGMASTER_PROGRAM);
  return {name, start(name, std::move(program), command), host};
}

soak_cluster::milliseconds soak_cluster::draw(std::mt19937_64& random, const std::vector<milliseconds>& lengths) {
  return lengths[random() % (1 + random() % lengths.size())];
}

void soak_cluster::pause(member& x, milliseconds length) {
  x.process.signal(SIGSTOP);
  x.goes_on = steady::now() + length;
  note(fmt::format("{} is stopped for {} ms", x.name, length.count()));
  event_ = true;
  ++counts_.pauses;
}

void soak_cluster::pause_all(milliseconds length) {
  pause(*coordinator_, length);
  for (auto& x : nodes_)
    if (!x.replaced)
      pause(x, length);
}

void soak_cluster::cut(size_t host, milliseconds length) {
  soak_network::set_cable(host, false);
  cut_until_[host] = steady::now() + length;
  note(fmt::format("the cable of host {} is out for {} ms", host, length.count()));
  event_ = true;
  ++counts_.cuts;
}

void soak_cluster::note_device_fault(const std::string& what) {
  std::scoped_lock lock{guard_};
  note(what);
  event_ = true;
  ++counts_.device_faults;
}

void soak_cluster::kill(member& x) {
  x.process.signal(SIGKILL);
  ::waitpid(x.process.pid(), nullptr, 0);
  const bool is_coordinator = &x == &*coordinator_;
  x.goes_on.reset();
  x.replaced = steady::now() + (is_coordinator ? pace_.restarted_after : pace_.replaced_after);
  note(x.name + " is killed");
  event_ = true;
  ++(is_coordinator ? counts_.coordinator_kills : counts_.kills);
}

void soak_cluster::note(const std::string& what) {
  auto now = std::chrono::system_clock::now();
  events_ << fmt::format("{:%T} {}\n", std::chrono::floor<milliseconds>(now), what) << std::flush;
}

void soak_cluster::advance(std::mt19937_64& random) {
  std::scoped_lock lock{guard_};
  look_for_end(*coordinator_);
  for (auto& x : nodes_)
    look_for_end(x);
  auto now = steady::now();
  auto wake = [&](member& x) {
    if (x.goes_on && *x.goes_on <= now) {
      x.process.signal(SIGCONT);
      x.goes_on.reset();
      note(x.name + " goes on");
    }
  };
  wake(*coordinator_);
  if (coordinator_->replaced && *coordinator_->replaced <= now)
    coordinator_ = start_coordinator();
  if (full_until_ && *full_until_ <= now)
    empty_disk();
  for (auto& x : nodes_) {
    wake(x);
    if (x.replaced && *x.replaced <= now && cut_until_.count(x.host) == 0) // one that starts finds the coordinator
      x = start_node(x.host);
  }
  std::erase_if(cut_until_, [&](auto& x) {
    if (x.second > now)
      return false;
    soak_network::set_cable(x.first, true);
    note(fmt::format("the cable of host {} is in again", x.first));
    return true;
  });
  if (now < next_event_)
    return;
  next_event_ = now + pace_.gap_min + random() % static_cast<uint64_t>(pace_.gap_spread.count()) * milliseconds{1};
  // Silences are not joined to longer ones.
  const bool coordinator_runs = !coordinator_->goes_on && !coordinator_->replaced;
  const bool all_run = coordinator_runs && cut_until_.empty()
                       && std::ranges::none_of(nodes_, [](auto& x) { return x.goes_on.has_value(); });
  auto& victim = nodes_[random() % nodes_.size()];
  const bool victim_runs = !victim.goes_on && !victim.replaced;
  switch (random() % 19) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      if (victim_runs && cut_until_.count(victim.host) == 0)
        pause(victim, draw(random, pace_.stops));
      return;
    case 5:
    case 6:
    case 7:
    case 8:
      if (victim_runs && coordinator_runs)
        kill(victim);
      return;
    case 9:
    case 10:
      if (coordinator_runs && cut_until_.empty())
        pause(*coordinator_, draw(random, pace_.stops));
      return;
    case 11:
      if (all_run)
        pause_all(draw(random, pace_.stops));
      return;
    case 12:
    case 13:
      if (network_ && victim_runs && coordinator_runs && cut_until_.count(victim.host) == 0)
        cut(victim.host, draw(random, pace_.cuts));
      return;
    case 14:
      if (network_ && all_run)
        for (auto length = draw(random, pace_.cuts); auto& x : nodes_)
          cut(x.host, length);
      return;
    case 15:
    case 16: // what a full disk did not take is written within a second after that; until then a restart may miss it
      if (pace_.harms_coordinator && coordinator_runs && !full_until_
          && now - disk_empty_since_ > std::chrono::seconds{3})
        kill(*coordinator_);
      return;
    case 17:
      if (pace_.harms_coordinator && disk_ && coordinator_runs && !full_until_)
        fill_disk();
      return;
    default: return;
  }
}

void soak_cluster::calm() {
  std::scoped_lock lock{guard_};
  if (full_until_)
    empty_disk();
  if (coordinator_->replaced)
    coordinator_ = start_coordinator();
  coordinator_->process.signal(SIGCONT);
  coordinator_->goes_on.reset();
  for (auto& x : nodes_)
    if (!x.replaced) {
      x.process.signal(SIGCONT);
      x.goes_on.reset();
    }
  for (auto& [host, until] : cut_until_)
    soak_network::set_cable(host, true);
  cut_until_.clear();
}

void soak_cluster::look_for_end(member& x) {
  auto status = x.replaced ? -1 : status_of(x.process.pid());
  if (status == -1)
    return;
  fmt::print("LOST: {} ended {} though it was not killed; it said:\n{}", x.name, end_text(status),
             test::content_of(fmt::format("{}/{}.log", scratch_.path(), x.name)));
  ++counts_.lost;
  x.goes_on.reset();
  x.replaced = steady::now(); // the coordinator, too, which finds its cluster again
}

soak_cluster::counts soak_cluster::so_far() const {
  std::scoped_lock lock{guard_};
  return counts_;
}

bool soak_cluster::take_event() {
  std::scoped_lock lock{guard_};
  return std::exchange(event_, false);
}

uint64_t soak_cluster::coordinator_bytes() const {
  std::scoped_lock lock{guard_};
  return own_bytes(coordinator_->process.pid());
}

uint64_t own_bytes(pid_t process) {
  std::ifstream file{fmt::format("/proc/{}/status", process)};
  for (std::string word; file >> word;)
    if (uint64_t kib = 0; word == "RssAnon:" && file >> kib)
      return kib << 10;
  return 0;
}

} // namespace ringmaster::soak
