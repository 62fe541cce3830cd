#include "bench/detector/bench_cluster.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <list>

namespace ringmaster::bench {

namespace {

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "detector: {}\n", why);
  std::exit(1);
}

sockaddr_in loopback(uint16_t port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  result.sin_port = htons(port);
  return result;
}

/// Moves what has come from one end to the other. Returns false if an end is closed.
bool pass_on(int from, int to) {
  std::array<char, 65536> bytes;
  const auto come = ::recv(from, bytes.data(), bytes.size(), 0);
  for (ssize_t sent = 0; sent < come;) {
    const auto now = ::send(to, bytes.data() + sent, static_cast<size_t>(come - sent), MSG_NOSIGNAL);
    if (now <= 0)
      return false;
    sent += now;
  }
  return come > 0;
}

struct passed_connection {
  launch::unique_fd near, far;
  bool was_cut = false;
};

} // namespace

silent_link::silent_link(uint16_t to) : to_(to), door_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  auto here = loopback(0);
  socklen_t size = sizeof here;
  if (::bind(door_.get(), reinterpret_cast<sockaddr*>(&here), size) != 0 || ::listen(door_.get(), 8) != 0
      || ::getsockname(door_.get(), reinterpret_cast<sockaddr*>(&here), &size) != 0)
    give_up("no port is free on the loopback interface");
  port_ = ntohs(here.sin_port);
  thread_ = std::thread{[this] { serve(ended_); }};
}

silent_link::~silent_link() {
  ended_ = true;
  thread_.join();
}

void silent_link::serve(const std::atomic<bool>& ended) const {
  constexpr int look_ms = 5;
  std::list<passed_connection> all;
  while (!ended) {
    const bool is_cut = is_cut_;
    if (!is_cut)
      std::erase_if(all, [](auto& x) { return x.was_cut; });
    std::vector<pollfd> waits{{door_.get(), POLLIN, 0}};
    for (auto& x : all) {
      x.was_cut |= is_cut;
      const short events = x.was_cut ? 0 : POLLIN;
      waits.push_back({x.near.get(), events, 0});
      waits.push_back({x.far.get(), events, 0});
    }
    if (::poll(waits.data(), waits.size(), look_ms) <= 0)
      continue;
    size_t place = 1;
    for (auto x = all.begin(); x != all.end(); place += 2) {
      bool is_open = true;
      if (!x->was_cut && waits[place].revents != 0)
        is_open = pass_on(x->near.get(), x->far.get());
      if (!x->was_cut && is_open && waits[place + 1].revents != 0)
        is_open = pass_on(x->far.get(), x->near.get());
      x = is_open ? std::next(x) : all.erase(x);
    }
    if (waits[0].revents == 0 || is_cut)
      continue;
    passed_connection made{launch::unique_fd{::accept4(door_.get(), nullptr, nullptr, SOCK_CLOEXEC)},
                           launch::unique_fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)}};
    const auto there = loopback(to_);
    if (made.near && ::connect(made.far.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0)
      all.push_back(std::move(made));
  }
}

bench_cluster::bench_cluster(const std::string& program, uint32_t nodes, uint32_t devices_a_node,
                             const detector_settings& how)
  : program_(program), nodes_(nodes), devices_a_node_(devices_a_node), processes_(nodes, -1) {
  auto form = (std::filesystem::temp_directory_path() / "detector-XXXXXX").string();
  if (::mkdtemp(form.data()) == nullptr)
    give_up("no directory can be made at " + form);
  dir_ = form;
  std::ofstream{dir_ / "conf"} << fmt::format("[log]\nlevel=\"off\"\n[trust]\ninsecure=true\n[device]\nmemory-bytes="
                                              "\"1 MiB\"\n[suspicion]\nlate-after={}ms\npause-max={}ms\n"
                                              "idle-interval={}ms\nlate={}\nwindow={}\n",
                                              how.late_after.count(), how.pause_max.count(), how.idle_interval.count(),
                                              how.late, how.window);
  const auto port_file = dir_ / "port";
  coordinator_ = start({program_, "coordinator", "--port", "0", "--port-file", port_file.string()});
  uint16_t port = 0;
  for (int tries = 0; port == 0; ++tries) {
    if (tries == 1000)
      give_up("the coordinator has not started within 10 s");
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
    std::ifstream{port_file} >> port;
  }
  where_ = fmt::format("127.0.0.1:{}", port);
  link_ = std::make_unique<silent_link>(port);
  for (uint32_t i = 0; i < nodes_; ++i)
    start_node(i);
}

bench_cluster::~bench_cluster() {
  for (auto process : processes_)
    end(process);
  end(coordinator_);
  std::error_code ignored;
  std::filesystem::remove_all(dir_, ignored);
}

pid_t bench_cluster::start(std::vector<std::string> command) const {
  command.insert(command.begin() + 2, {"--conf", (dir_ / "conf").string()});
  launch::child_spec spec{.arguments = std::move(command), .output = launch::child_spec::output_kind::inherited};
  ::sigemptyset(&spec.signal_mask);
  auto started = launch::child_process::start(spec);
  if (!started)
    give_up(to_string(started.error()));
  return started->pid();
}

void bench_cluster::start_node(uint32_t index) {
  const auto joins = index + 1 == nodes_ ? fmt::format("127.0.0.1:{}", link_->port()) : where_;
  processes_[index] = start({program_, "node", "--join", joins, "--devices", std::to_string(devices_a_node_), "--name",
                             fmt::format("n{}", index)});
}

void bench_cluster::restart_node(uint32_t index) {
  end(processes_[index]);
  start_node(index);
}

void bench_cluster::end(pid_t process) {
  if (process <= 0)
    return;
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
}

} // namespace ringmaster::bench
