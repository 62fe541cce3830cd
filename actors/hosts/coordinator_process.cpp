#include "actors/hosts/coordinator_process.hpp"

#include "runtime/memory/mapped_memory.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <unistd.h>

namespace ringmaster {

namespace {

/// In ticks since the start of the kernel; 0: there is no such process, or it has ended and waits for its parent.
uint64_t start_of(pid_t pid) {
  std::ifstream file{fmt::format("/proc/{}/stat", pid)};
  std::string line;
  std::getline(file, line);
  const auto name_end = line.rfind(')'); // a name may have blanks
  if (name_end == std::string::npos)
    return 0;
  std::istringstream fields{line.substr(name_end + 1)};
  std::string state, skipped;
  fields >> state;
  for (int i = 0; i < 18; ++i) // the start is field 22, and the state field 3
    fields >> skipped;
  uint64_t start = 0;
  fields >> start;
  return state == "Z" || state == "X" ? 0 : start;
}

} // namespace

void name_this_process(proto::ClusterIdentity& identity) {
  identity.set_host_id(this_host());
  identity.set_pid(static_cast<uint32_t>(::getpid()));
  identity.set_started(start_of(::getpid()));
}

bool end_replaced_coordinator(const proto::ClusterIdentity& former) {
  const auto pid = static_cast<pid_t>(former.pid());
  const auto still_runs = [&] { return start_of(pid) == former.started(); };
  if (former.host_id() == 0 || former.host_id() != this_host() || pid <= 1 || former.started() == 0 || pid == ::getpid()
      || !still_runs())
    return false;
  spdlog::warn(
    "the coordinator of incarnation {} was replaced, and its process {} still runs on this host: killing it, "
    "since it may write to devices' memory",
    former.incarnation(), pid);
  if (::kill(pid, SIGKILL) != 0) {
    spdlog::error("process {} cannot be killed: {}; end it", pid, std::strerror(errno));
    return true;
  }
  constexpr int looks = 1000;
  for (int i = 0; i < looks && still_runs(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  return true;
}

} // namespace ringmaster
