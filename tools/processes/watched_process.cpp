#include "tools/processes/watched_process.hpp"

#include <cerrno>
#include <poll.h>
#include <unistd.h>

namespace ringmaster::launch {

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
