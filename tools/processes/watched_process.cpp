#include "tools/processes/watched_process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ringmaster::launch {

line_prefixer::line_prefixer(std::string_view name) : prefix_("[") {
  prefix_.append(name).append("] ");
}

std::string line_prefixer::feed(std::string_view bytes) {
  std::string lines;
  while (!bytes.empty()) {
    auto room = max_line_bytes - begun_.size();
    auto end = bytes.find('\n');
    auto taken = std::min({end, room, bytes.size()});
    begun_.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    if (!bytes.empty() && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      complete_line(lines);
    } else if (begun_.size() == max_line_bytes) {
      complete_line(lines);
    }
  }
  return lines;
}

std::string line_prefixer::flush() {
  std::string lines;
  if (!begun_.empty())
    complete_line(lines);
  return lines;
}

void line_prefixer::complete_line(std::string& lines) {
  // A remote shell may end lines with CRLF.
  if (!begun_.empty() && begun_.back() == '\r')
    begun_.pop_back();
  lines.append(prefix_).append(begun_).push_back('\n');
  if (begun_.find_first_not_of(" \t") != std::string::npos)
    last_line_ = begun_;
  begun_.clear();
}

int exit_status::shell_status() const {
  return WIFSIGNALED(raw_) ? 128 + WTERMSIG(raw_) : WEXITSTATUS(raw_);
}

bool exit_status::ended_from_outside() const {
  if (!WIFSIGNALED(raw_))
    return false;
  auto number = WTERMSIG(raw_);
  return number == SIGKILL || number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
}

std::string exit_status::describe() const {
  if (WIFSIGNALED(raw_))
    return fmt::format("was ended by signal {} ({})", WTERMSIG(raw_), ::strsignal(WTERMSIG(raw_)));
  return fmt::format("exited with status {}", WEXITSTATUS(raw_));
}

watched_process::watched_process(std::string name, child_process child, output_use use)
  : name_(std::move(name)), child_(std::move(child)), use_(use), output_lines_(name_), error_lines_(name_) {}

std::string watched_process::describe_end() const {
  auto text = status_->describe();
  return last_words().empty() || status_->ended_from_outside() ? text : text + ": " + last_words();
}

const std::string& watched_process::last_words() const {
  return error_lines_.last_line().empty() ? output_lines_.last_line() : error_lines_.last_line();
}

void watched_process::signal(int number) {
  if (running())
    child_.signal(number);
}

void watched_process::stop() {
  if (running())
    child_.stop();
}

void watched_process::nudge() {
  if (running())
    child_.nudge();
}

void watched_process::read_output() {
  read_stream(child_.standard_output(), output_lines_, STDOUT_FILENO);
  read_stream(child_.standard_error(), error_lines_, STDERR_FILENO);
  read_notices();
}

void watched_process::read_notices() {
  char buffer[4 * 1024];
  auto& fd = child_.notices();
  while (fd && noticed_.size() < max_kept_bytes) {
    const auto count = ::read(fd.get(), buffer, sizeof buffer);
    if (count > 0)
      noticed_.append(buffer, static_cast<size_t>(count));
    else if (count == 0 || (errno != EAGAIN && errno != EINTR))
      fd.close();
    else if (errno == EAGAIN)
      return;
  }
}

std::vector<std::string> watched_process::take_notices() {
  read_notices();
  std::vector<std::string> result;
  for (size_t end = 0; (end = noticed_.find('\n')) != std::string::npos; noticed_.erase(0, end + 1))
    result.push_back(noticed_.substr(0, end));
  return result;
}

void watched_process::on_exit(exit_status status) {
  // Its output is in the pipes. Orphans may hold these open for ever, so their end is not waited for.
  read_output();
  status_ = status;
  show(output_lines_.flush(), STDOUT_FILENO);
  show(error_lines_.flush(), STDERR_FILENO);
  child_.standard_output().close();
  child_.standard_error().close();
  child_.notices().close();
}

void watched_process::read_stream(unique_fd& fd, line_prefixer& lines, int own_stream) {
  char buffer[16 * 1024];
  // A bound, so that a process that writes without end does not block the others.
  for (int round = 0; fd && round < 16; ++round) {
    auto count = ::read(fd.get(), buffer, sizeof buffer);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
      fd.close();
    if (count < 0 && errno == EAGAIN)
      return;
    if (count <= 0)
      continue;
    std::string_view bytes(buffer, static_cast<size_t>(count));
    show(lines.feed(bytes), own_stream);
    if (use_ == output_use::kept && own_stream == STDOUT_FILENO)
      kept_.append(bytes.substr(0, max_kept_bytes - kept_.size()));
  }
}

void watched_process::show(const std::string& lines, int own_stream) const {
  if (use_ != output_use::kept)
    write_to_stream(use_ == output_use::tagged ? own_stream : STDERR_FILENO, lines);
}

void write_to_standard_error(const std::string& text) {
  write_to_stream(STDERR_FILENO, text);
}

void write_to_stream(int stream, const std::string& text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    auto count = ::write(stream, rest.data(), rest.size());
    if (count >= 0) {
      rest.remove_prefix(static_cast<size_t>(count));
    } else if (errno == EAGAIN) { // the stream was passed to this process as non-blocking
      pollfd writable{stream, POLLOUT, 0};
      ::poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      return; // the reader has closed it
    }
  }
}

} // namespace ringmaster::launch
