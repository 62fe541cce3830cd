#include "tests/programs/soak_cluster.hpp"
#include "tests/support/file_content.hpp"

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

soak_cluster::soak_cluster(size_t nodes, const std::string& route, const pace& how_fast)
  : route_("--route.use=" + route), pace_(how_fast), scratch_(std::move(*launch::scratch_directory::make())),
    events_(scratch_.path() + "/events.log") {
  auto port_file = scratch_.path() + "/port";
  coordinator_.emplace(member{"coordinator",
                              start("coordinator", {"coordinator", "--port", "0", "--port-file", port_file, "--journal",
                                                    scratch_.path() + "/journal", route_})});
  uint32_t port = 0;
  for (auto give_up = steady::now() + std::chrono::seconds{20}; port == 0 && steady::now() < give_up;) {
    std::ifstream{port_file} >> port;
    std::this_thread::sleep_for(milliseconds{5});
  }
  if (port == 0) {
    fmt::print(stderr, "soak: the coordinator did not listen within 20 s: see {}/coordinator.log\n", scratch_.path());
    std::exit(1);
  }
  address_ = fmt::format("127.0.0.1:{}", port);
  while (nodes_.size() < nodes)
    nodes_.push_back(start_node());
}

soak_cluster::~soak_cluster() {
  calm();
  for (auto& x : nodes_)
    x.process.stop();
  coordinator_->process.stop();
}

launch::child_process soak_cluster::start(const std::string& name, std::vector<std::string> arguments) {
  auto command = fmt::format("exec \"$0\" \"$@\" > {}/{}.log 2>&1", scratch_.path(), name);
  std::vector<std::string> all{"sh", "-c", command, RINGMASTER_PROGRAM};
  all.insert(all.end(), arguments.begin(), arguments.end());
  auto child = launch::child_process::start({.arguments = all, .output = launch::child_spec::output_kind::inherited});
  if (!child) {
    fmt::print(stderr, "soak: {} cannot be started\n", RINGMASTER_PROGRAM);
    std::exit(1);
  }
  return std::move(*child);
}

soak_cluster::member soak_cluster::start_node() {
  auto name = fmt::format("node-{}", ++nodes_started_);
  note(name + " starts");
  // The coordinator may be stopped several times while one joins: as long as a connection may be silent.
  return {name, start(name, {"node", "--join", address_, "--devices", "2", "--name", name, route_,
                             "--node.join-timeout=20s"})};
}

void soak_cluster::pause(member& x, milliseconds length) {
  x.process.signal(SIGSTOP);
  x.goes_on = steady::now() + length;
  note(fmt::format("{} is stopped for {} ms", x.name, length.count()));
  event_ = true;
  ++counts_.pauses;
}

void soak_cluster::kill(member& x) {
  x.process.signal(SIGKILL);
  ::waitpid(x.process.pid(), nullptr, 0);
  x.goes_on.reset();
  x.replaced = steady::now() + pace_.replaced_after;
  note(x.name + " is killed");
  event_ = true;
  ++counts_.kills;
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
  for (auto& x : nodes_) {
    wake(x);
    if (x.replaced && *x.replaced <= now)
      x = start_node();
  }
  if (now < next_event_)
    return;
  next_event_ = now + pace_.gap_min + random() % static_cast<uint64_t>(pace_.gap_spread.count()) * milliseconds{1};
  auto& victim = nodes_[random() % nodes_.size()];
  if (victim.goes_on || victim.replaced)
    return;
  switch (random() % 8) {
    case 0:
    case 1:
    case 2: return pause(victim, pace_.stops[random() % 3]);
    case 3:
    case 4:
    case 5: return kill(victim);
    case 6:
      if (!coordinator_->goes_on)
        pause(*coordinator_, pace_.stops[random() % 3]);
      return;
    default: return;
  }
}

void soak_cluster::calm() {
  std::scoped_lock lock{guard_};
  coordinator_->process.signal(SIGCONT);
  coordinator_->goes_on.reset();
  for (auto& x : nodes_)
    if (!x.replaced) {
      x.process.signal(SIGCONT);
      x.goes_on.reset();
    }
}

void soak_cluster::look_for_end(member& x) {
  auto status = x.replaced ? -1 : status_of(x.process.pid());
  if (status == -1)
    return;
  fmt::print("LOST: {} ended {} though nobody had ended it; it said:\n{}", x.name, end_text(status),
             test::content_of(fmt::format("{}/{}.log", scratch_.path(), x.name)));
  ++counts_.lost;
  x.goes_on.reset();
  x.replaced = steady::now();
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
