#include "tests/programs/soak_network.hpp"

#include "messages/errc.hpp"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <thread>

namespace ringmaster::soak {

namespace {

namespace fs = std::filesystem;

caf::error run(const std::string& command) {
  if (std::system((command + " >/dev/null 2>&1").c_str()) == 0)
    return caf::none;
  return make_error(errc::io_error, fmt::format("\"{}\" failed", command));
}

std::string namespace_of(const std::string& process) {
  std::error_code problem;
  return fs::read_symlink(fmt::format("/proc/{}/ns/net", process), problem).string();
}

/// Whether the process has a network namespace of its own by now.
bool becomes_apart(pid_t process) {
  for (auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds{5};
       std::chrono::steady_clock::now() < give_up; std::this_thread::sleep_for(std::chrono::milliseconds{5}))
    if (auto its = namespace_of(std::to_string(process)); !its.empty() && its != namespace_of("self"))
      return true;
  return false;
}

} // namespace

std::string soak_network::address_of(size_t host) {
  return fmt::format("10.83.0.{}", 11 + host);
}

caf::expected<soak_network> soak_network::make(size_t hosts) {
  if (::unshare(CLONE_NEWNET) != 0)
    return make_error(errc::io_error, "this process may not have a network namespace of its own (unshare)");
  for (auto& command :
       {std::string{"ip link set lo up"}, std::string{"ip link add cluster type bridge"},
        fmt::format("ip addr add {}/24 dev cluster", own_address()), std::string{"ip link set cluster up"}})
    if (auto problem = run(command))
      return problem;
  soak_network result;
  for (size_t host = 0; host < hosts; ++host) {
    auto holder = launch::child_process::start({.arguments = {"unshare", "--net", "sleep", "infinity"},
                                                .output = launch::child_spec::output_kind::inherited});
    if (!holder)
      return std::move(holder.error());
    if (!becomes_apart(holder->pid()))
      return make_error(errc::io_error, "\"unshare --net\" made no network namespace within 5 s");
    result.holders_.push_back(std::move(*holder));
    auto inside = fmt::format("{}", fmt::join(result.on_host(host), " "));
    for (auto& command :
         {fmt::format("ip link add host{0} type veth peer name eth0 netns {1}", host, result.holders_.back().pid()),
          fmt::format("ip link set host{} master cluster up", host), inside + " ip link set lo up",
          fmt::format("{} ip addr add {}/24 dev eth0", inside, address_of(host)), inside + " ip link set eth0 up"})
      if (auto problem = run(command))
        return problem;
  }
  return result;
}

std::vector<std::string> soak_network::on_host(size_t host) const {
  return {"nsenter", fmt::format("--net=/proc/{}/ns/net", holders_[host].pid()), "--"};
}

void soak_network::set_cable(size_t host, bool plugged_in) {
  if (auto problem = run(fmt::format("ip link set host{} {}", host, plugged_in ? "up" : "down")))
    fmt::print(stderr, "soak: {}\n", render(problem));
}

} // namespace ringmaster::soak
