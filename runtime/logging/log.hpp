#pragma once

#include "runtime/configuration/options.hpp"

#include <spdlog/spdlog.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace ringmaster {

/// What a line of the log is about. Zero and empty: none. The sentence names them as well; programs that read
/// `log.format` "json" find them as fields.
struct log_subject {
  std::string_view node{};
  uint64_t device = 0, communicator = 0, operation = 0;
};

/// The subject of the line that this thread writes at the moment. Loggers write in the calling thread.
class log_about {
public:
  explicit log_about(const log_subject& subject);
  ~log_about();
  log_about(const log_about&) = delete;
  log_about& operator=(const log_about&) = delete;

  static const log_subject& current();

private:
  log_subject outer_;
};

template <class... Ts>
void log_info(const log_subject& subject, spdlog::format_string_t<Ts...> format, Ts&&... xs) {
  log_about about{subject};
  spdlog::info(format, std::forward<Ts>(xs)...);
}

template <class... Ts>
void log_warn(const log_subject& subject, spdlog::format_string_t<Ts...> format, Ts&&... xs) {
  log_about about{subject};
  spdlog::warn(format, std::forward<Ts>(xs)...);
}

template <class... Ts>
void log_error(const log_subject& subject, spdlog::format_string_t<Ts...> format, Ts&&... xs) {
  log_about about{subject};
  spdlog::error(format, std::forward<Ts>(xs)...);
}

/// Sends what the actors log to standard error, from `log.level` on and in `log.format`: a line of text with date, time
/// and level, or an object of JSON a line with `time` (UTC, RFC 3339), `level`, `message`, `cluster`, and `node`,
/// `device`, `communicator` and `operation` if the line is about one. Calling it again changes level and format.
void start_log(const options& opts);

/// Lines about no other node are this process's: they get this name. Thread-safe.
void set_log_node(const std::string& name);

/// The formatter of `log.format` "json". `cluster` is the coordinator's address; empty: this process has it.
std::unique_ptr<spdlog::formatter> json_log_formatter(std::string cluster);

} // namespace ringmaster
