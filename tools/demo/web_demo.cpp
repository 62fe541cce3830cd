#include "tools/demo/web_demo.hpp"

#include "messages/errc.hpp"
#include "runtime/configuration/places.hpp"
#include "tools/launch/scratch_directory.hpp"
#include "tools/options/tool_command.hpp"
#include "tools/processes/process_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ringmaster {

namespace {

using namespace launch;
using namespace std::chrono_literals;
using output_use = watched_process::output_use;

constexpr const char* nodes = "2";
constexpr const char* devices_per_node = "7"; // 8 for all-reduces, 4 for the training, 2 spares
constexpr auto stop_limit = 3s;

/// The program of that name beside this one. Errors: io_error, with the command that builds it.
caf::expected<std::string> program_beside(const std::string& name) {
  const auto path = program_directory() / name;
  if (::access(path.c_str(), X_OK) == 0)
    return path.string();
  return make_error(errc::io_error,
                    fmt::format("there is no program {}: `./run demo --web` builds what it needs", path.string()));
}

/// The port, if it is free on the loopback address, or else any free one; 0: none is.
uint16_t free_port(uint16_t wanted) {
  for (const auto port : {wanted, uint16_t{0}}) {
    const auto socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in address{};
    socklen_t bytes = sizeof address;
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool bound = ::bind(socket, reinterpret_cast<sockaddr*>(&address), bytes) == 0
                       && ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &bytes) == 0;
    ::close(socket);
    if (bound)
      return ntohs(address.sin_port);
  }
  return 0;
}

bool is_listening(uint16_t port) {
  const auto socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool result = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(socket);
  return result;
}

/// 48 hexadecimal digits that cannot be guessed. Empty: the system has no random numbers.
std::string new_token() {
  std::array<unsigned char, 24> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return {};
  std::string result;
  for (auto byte : bytes)
    result += fmt::format("{:02x}", byte);
  return result;
}

caf::error write_secret(const std::string& path, const std::string& text) {
  const auto file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  const bool written = file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (file >= 0)
    ::close(file);
  if (written)
    return caf::none;
  return make_error(errc::io_error, fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

/// A program that is started again when it has exited.
struct repeated_program {
  std::string name;
  std::vector<std::string> arguments;
  process_watch::clock::time_point due{}; ///< When it is started next.
  watched_process* running = nullptr;
};

/// The programs of one demonstration.
class web_demo {
public:
  web_demo(process_watch& watch, scratch_directory scratch, std::string where)
    : watch_(watch), scratch_(std::move(scratch)), where_(std::move(where)) {}

  caf::expected<int> run(uint16_t wanted_port);

private:
  caf::error start_gateway(uint16_t port, const std::string& token);
  caf::error add_load();
  void keep_running();
  /// Opens the page in a browser, if this host has a display.
  void show(const std::string& url);
  void stop_all();
  void step(std::chrono::milliseconds within);
  caf::error start(std::string name, std::vector<std::string> arguments, watched_process*& to);

  process_watch& watch_;
  scratch_directory scratch_;
  const std::string where_; ///< The coordinator.
  watched_process* gateway_ = nullptr;
  std::vector<repeated_program> load_;
  std::vector<watched_process*> others_;
  bool stops_ = false;
};

caf::error web_demo::start(std::string name, std::vector<std::string> arguments, watched_process*& to) {
  child_spec spec;
  spec.arguments = std::move(arguments);
  auto started = watch_.start(std::move(name), std::move(spec), output_use::kept);
  if (!started)
    return std::move(started.error());
  to = *started;
  return caf::none;
}

caf::error web_demo::start_gateway(uint16_t port, const std::string& token) {
  auto program = program_beside("ringmaster-gateway");
  if (!program)
    return std::move(program.error());
  const auto file = scratch_.path() + "/token";
  if (auto problem = write_secret(file, token + '\n'))
    return problem;
  if (auto problem = start("gateway",
                           {*program, "--join", where_, "--grpc", "127.0.0.1:0", "--http",
                            fmt::format("127.0.0.1:{}", port), "--operator-token", file, "--log.level=warn"},
                           gateway_))
    return problem;
  constexpr auto limit = 30s;
  const auto give_up = process_watch::clock::now() + limit;
  while (!stops_ && gateway_->running() && !is_listening(port)) {
    if (process_watch::clock::now() > give_up)
      return make_error(errc::timed_out, fmt::format("ringmaster-gateway does not listen after {} s", limit.count()));
    step(50ms);
  }
  if (!gateway_->running())
    return make_error(errc::io_error, fmt::format("ringmaster-gateway {}", gateway_->describe_end()));
  return caf::none;
}

caf::error web_demo::add_load() {
  auto program = program_beside("ringmaster");
  if (!program)
    return std::move(program.error());
  load_.push_back({"all-reduces",
                   {*program, "bench", "all_reduce", "--join", where_, "--algorithm", "ring", "--devices", "8",
                    "--min-bytes", "1MiB", "--max-bytes", "1MiB", "--iterations", "1", "--samples", "1000",
                    "--single"}});
  load_.push_back({"training",
                   {*program, "train", "--join", where_, "--strategy", "ddp", "--ranks", "4", "--epochs", "100"}});
  // Rounds of these two are slow enough to watch: a device of each is slowed down.
  watched_process* slow = nullptr;
  for (const auto* device : {"0x3", "0xa"}) {
    if (auto problem = start("slow", {*program, "slow", device, "50ms", "--join", where_}, slow))
      return problem;
    others_.push_back(slow);
  }
  return caf::none;
}

void web_demo::keep_running() {
  constexpr auto pause = 2s; // of one whose device was killed: its communicator needs the spare
  const auto now = process_watch::clock::now();
  for (auto& x : load_) {
    if (x.running != nullptr && !x.running->running()) {
      x.running = nullptr;
      x.due = now + pause;
    }
    if (x.running != nullptr || now < x.due)
      continue;
    if (auto problem = start(x.name, x.arguments, x.running)) {
      write_to_standard_error(fmt::format("{}: {}\n", x.name, render(problem)));
      x.due = now + pause;
    }
  }
}

void web_demo::show(const std::string& url) {
  const auto is_set = [](const char* name) {
    const auto* value = std::getenv(name);
    return value != nullptr && *value != '\0';
  };
  if (!is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY"))
    return;
  watched_process* browser = nullptr;
  if (!start("browser", {"xdg-open", url}, browser)) // without it, the user opens the address
    others_.push_back(browser);
}

void web_demo::step(std::chrono::milliseconds within) {
  for (auto& signal : watch_.step(process_watch::clock::now() + within)) {
    if (signal.number == SIGTSTP)
      watch_.suspend();
    else if (signal.number != SIGUSR1 && signal.number != SIGUSR2)
      stops_ = true;
  }
}

void web_demo::stop_all() {
  std::vector<watched_process*> all = others_;
  all.push_back(gateway_);
  for (auto& x : load_)
    all.push_back(x.running);
  std::erase(all, nullptr);
  for (auto* x : all)
    x->stop();
  const auto give_up = process_watch::clock::now() + stop_limit;
  const auto is_running = [](auto* x) { return x->running(); };
  while (std::ranges::any_of(all, is_running) && process_watch::clock::now() < give_up)
    step(50ms); // what is left then is killed with `watch_`
}

caf::expected<int> web_demo::run(uint16_t wanted_port) {
  const auto port = free_port(wanted_port);
  const auto token = new_token();
  if (port == 0 || token.empty())
    return make_error(errc::io_error, port == 0 ? "no port of 127.0.0.1 is free" : "the system has no random numbers");
  auto problem = start_gateway(port, token);
  if (!problem && !stops_)
    problem = add_load();
  const auto url = fmt::format("http://127.0.0.1:{}/#token={}", port, token);
  if (!problem && !stops_) {
    fmt::print("The cluster, its operations and a training: {}\n"
               "The address has the operator's token: the page may kill, hang, slow and drain. Ctrl-C ends all.\n",
               url);
    std::fflush(stdout);
    show(url);
  }
  while (!problem && !stops_) {
    keep_running();
    step(500ms);
    if (!gateway_->running())
      problem = make_error(errc::io_error, fmt::format("ringmaster-gateway {}", gateway_->describe_end()));
  }
  stop_all();
  if (problem)
    return problem;
  return exit_ok;
}

} // namespace

caf::error start_cluster_around(const std::vector<std::string>& arguments) {
  auto launcher = program_beside("caf-run");
  auto program = launcher ? program_beside("ringmaster") : launcher;
  if (!program)
    return std::move(program.error());
  std::vector<std::string> words{*launcher,
                                 "--local",
                                 nodes,
                                 "--devices-per-node",
                                 devices_per_node,
                                 "--journal.retain-records=200000",
                                 "--log.level=warn",
                                 "--",
                                 *program,
                                 "demo"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (auto& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::fflush(nullptr);
  ::execv(pointers[0], pointers.data());
  return make_error(errc::io_error, fmt::format("cannot start {}: {}", words[0], std::strerror(errno)));
}

caf::expected<int> run_web_demo(const std::string& where, const web_demo_options& options) {
  auto watch = process_watch::make();
  if (!watch)
    return std::move(watch.error());
  auto scratch = scratch_directory::make();
  if (!scratch)
    return std::move(scratch.error());
  return web_demo{**watch, std::move(*scratch), where}.run(options.port);
}

} // namespace ringmaster
