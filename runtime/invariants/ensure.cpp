#include "runtime/invariants/ensure.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fmt/format.h>
#include <mutex>
#include <spdlog/spdlog.h>
#include <thread>
#include <utility>

namespace ringmaster {

namespace {

constexpr size_t reports_max = 8;

std::mutex reports_guard;
std::deque<std::function<std::string()>>& reports() {
  static auto* all = new std::deque<std::function<std::string()>>; // an invariant may break while statics are destroyed
  return *all;
}

/// The path from the root of the source tree. The tree of tests mirrors the others.
std::string_view short_path(std::string_view path) {
  if (!path.starts_with('/'))
    return path;
  for (std::string_view folder : {"/tests/", "/actors/", "/client/", "/messages/", "/runtime/", "/tools/"})
    if (const auto at = path.rfind(folder); at != path.npos)
      return path.substr(at + 1);
  return path;
}

void say(const std::string& text) {
  if (auto* log = spdlog::default_logger_raw(); log != nullptr && log->should_log(spdlog::level::critical)) {
    log->critical("{}", text);
    log->flush();
  } else {
    std::fputs((text + "\n").c_str(), stderr);
  }
}

} // namespace

void report_before_abort(std::function<std::string()> report) {
  std::scoped_lock lock{reports_guard};
  reports().push_back(std::move(report));
  if (reports().size() > reports_max)
    reports().pop_front();
}

void invariant_broken(std::string_view what, const std::string& state, const std::source_location& where) {
  static std::atomic<bool> broken{false};
  thread_local bool here = false;
  if (std::exchange(here, true))
    std::abort(); // a report has broken another invariant
  if (broken.exchange(true))
    for (;;)
      std::this_thread::sleep_for(std::chrono::seconds{1}); // another thread reports, and aborts
  say(fmt::format("an invariant is broken: {} ({}:{}); this process aborts{}{}", what, short_path(where.file_name()),
                  where.line(), state.empty() ? "" : "; state: ", state));
  if (std::unique_lock lock{reports_guard, std::try_to_lock})
    for (auto& report : reports())
      if (const auto lines = report(); !lines.empty())
        say(lines);
  std::abort();
}

} // namespace ringmaster
