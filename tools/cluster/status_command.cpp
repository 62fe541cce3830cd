#include "tools/options/commands.hpp"

#include "actors/configuration/settings.hpp"
#include "client/client.hpp"
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/logging/log.hpp"
#include "tools/clients/cluster_connection.hpp"
#include "tools/cluster/info_text.hpp"
#include "tools/cluster/status_text.hpp"
#include "tools/console/terminal.hpp"
#include "tools/options/configured_call.hpp"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>

namespace ringmaster {

namespace {

/// Reports that the coordinator does not answer: on a terminal every second, in a line that is overwritten, elsewhere
/// once. Has a thread for that.
class silence_notice {
public:
  explicit silence_notice(std::FILE* out);

  /// The caller waits for an answer.
  void asked();
  void answered();

private:
  using clock = std::chrono::steady_clock;

  void look(std::stop_token ends);
  void report();

  std::FILE* out_;
  bool is_live_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<clock::time_point> asked_at_; ///< None: no answer is awaited.
  clock::time_point due_;                     ///< The time of the next report.
  bool reported_ = false;                     ///< This silence.
  std::jthread looks_;                        ///< The last member: it is destroyed first.
};

constexpr std::chrono::seconds interval{1};

silence_notice::silence_notice(std::FILE* out)
  : out_(out), is_live_(terminal{out}.is_one()), looks_([this](std::stop_token ends) { look(std::move(ends)); }) {}

void silence_notice::asked() {
  std::lock_guard guard{mutex_};
  if (asked_at_)
    return;
  asked_at_ = clock::now();
  due_ = *asked_at_ + interval;
  changed_.notify_one();
}

void silence_notice::answered() {
  std::lock_guard guard{mutex_};
  asked_at_.reset();
  if (std::exchange(reported_, false) && is_live_) {
    std::fputc('\n', out_); // finishes the line
    std::fflush(out_);
  }
  changed_.notify_one();
}

void silence_notice::look(std::stop_token ends) {
  std::unique_lock lock{mutex_};
  while (!ends.stop_requested()) {
    if (!asked_at_) {
      changed_.wait(lock, ends, [this] { return asked_at_.has_value(); });
      continue;
    }
    if (changed_.wait_until(lock, ends, due_, [this] { return !asked_at_; }) || ends.stop_requested())
      continue;
    report();
    due_ += interval;
  }
}

void silence_notice::report() {
  if (std::exchange(reported_, true) && !is_live_)
    return;
  ensure(asked_at_.has_value(), "a silence starts with a question");
  const std::chrono::duration<double> silence = clock::now() - *asked_at_;
  const auto text = fmt::format("{}ringmaster status: the coordinator has not answered for {:.0f} s{}",
                                is_live_ ? "\r" : "", silence.count(), is_live_ ? "" : "\n");
  std::fwrite(text.data(), 1, text.size(), out_); // fmt::print would throw for a closed pipe
  std::fflush(out_);
}

std::string painted(const terminal& paint, tone how, const std::string& text) {
  switch (how) {
    case tone::good: return paint.good(text);
    case tone::warning: return paint.warning(text);
    case tone::bad: return paint.bad(text);
    case tone::plain: break;
  }
  return text;
}

/// Ctrl-C ends --watch, which is no failure. Each screen is written as a whole.
void end_watch(int) {
  if (::isatty(STDOUT_FILENO) != 0) [[maybe_unused]]
    auto written = ::write(STDOUT_FILENO, "\n", 1); // after the ^C
  ::_exit(exit_ok);
}

class status_call final : public configured_call {
  void declare_options(option_table& table) override {
    table.about("Shows what a cluster is doing: operations in flight, the ranks that others wait for, the progress and "
                "place of each rank, bytes by route, and the nodes. The coordinator answers from memory, with the age "
                "of what it knows, so a node that is paused does not delay the answer.");
    table
      .positional("HOST:PORT",
                  [this, &table](const std::string& text) {
                    where_ = text;
                    table.configure_by("--node.join=" + text);
                    return caf::error{};
                  })
      .says("the cluster's coordinator, like --join");
    join_option(table);
    key_option(table, "--timeout", "node.join-timeout")
      .says("T", "how long to wait for the coordinator's answer, such as 30s");
    table.flag("--json", json_)
      .says("prints a JSON object in a line, with the fields of ClusterStatus in messages/status.proto");
    table.flag("--wide", wide_)
      .says("shows all columns and does not wrap lines; else lines fit the terminal, or 100 columns, and the table of "
            "ranks leaves out queued, late, device, received and where, in this order and as far as necessary");
    table.flag("--watch", watch_).says("prints it every second until Ctrl-C, and then exits with status 0");
    table.add_example("ringmaster status head:7077 --watch", "a live view");
    table.closing(
      "Columns: \"heard\" is the age of a rank's latest answer, \"late\" the number of its last answers that came too "
      "late, \"queued\" the number of commands in its stream. Rates are of the last five seconds.");
  }

  caf::error check() override {
    auto others = values_given("node.join");
    std::erase(others, where_);
    if (where_.empty() || others.empty())
      return caf::none;
    return invalid(fmt::format("the status of {} or of {}? Give one coordinator, as HOST:PORT or with --join", where_,
                               others.front()));
  }

  caf::expected<int> run(const console& to) override {
    auto& opts = cfg_.values();
    start_log(opts);
    if (watch_)
      std::signal(SIGINT, end_watch);
    caf::actor_system system{cfg_};
    TRY(host, coordinator_for("ringmaster status", system, opts, to.err));
    client user{system, *host};
    const terminal screen{to.out};
    std::optional<silence_notice> silence;
    if (watch_)
      silence.emplace(to.err);
    for (;;) {
      if (silence)
        silence->asked();
      auto status = user.cluster_status();
      if (!status && watch_ && status.error() == errc::timed_out)
        continue; // it may continue: its silence is reported
      if (silence)
        silence->answered();
      if (!status)
        return std::move(status.error());
      print(*status, coordinator_elsewhere(opts), screen, to.out);
      if (!watch_ || std::ferror(to.out) != 0)
        return exit_ok;
      std::this_thread::sleep_for(between_screens);
    }
  }

  void print(const proto::ClusterStatus& status, const std::string& coordinator, const terminal& screen,
             std::FILE* out) {
    const auto page = page_format::of_console(wide_);
    std::string text;
    if (watch_ && !json_ && screen.is_one())
      text = "\033[H\033[2J"; // replaces the previous screen
    else if (std::exchange(has_printed_, true) && !json_)
      text = "\n";
    if (json_)
      text += json_of(status) + "\n";
    else
      for (auto& line : status_text(status, coordinator, utc_offset_now(), page))
        text += painted(screen, line.how, page.lines(line.text));
    std::fwrite(text.data(), 1, text.size(), out); // fmt::print would throw for a closed pipe
    std::fflush(out);
  }

  static constexpr std::chrono::seconds between_screens{1};
  bool json_ = false, watch_ = false, wide_ = false, has_printed_ = false;
  std::string where_; ///< The coordinator, if no option names it.
};

} // namespace

tool_command status_command() {
  return tool_command::of<status_call>("status", "shows what a cluster is doing, and which ranks it waits for");
}

} // namespace ringmaster
