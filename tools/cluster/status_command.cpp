#include "tools/cluster/status_command.hpp"

#include "actors/configuration/log.hpp"
#include "client/client.hpp"
#include "messages/errc.hpp"
#include "tools/clients/cluster_connection.hpp"
#include "tools/cluster/info_text.hpp"
#include "tools/cluster/silence_notice.hpp"
#include "tools/cluster/status_text.hpp"
#include "tools/console/terminal.hpp"
#include "tools/options/configured_call.hpp"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <thread>
#include <unistd.h>

namespace ringmaster {

namespace {

std::string painted(const terminal& paint, const status_line& line) {
  switch (line.how) {
    case tone::good: return paint.good(line.text);
    case tone::warning: return paint.warning(line.text);
    case tone::bad: return paint.bad(line.text);
    case tone::plain: break;
  }
  return line.text;
}

/// Ctrl-C is how a watch is ended, at whatever moment: that is no failure. Each screen was written as a whole.
void end_watch(int) {
  if (::isatty(STDOUT_FILENO) != 0) [[maybe_unused]]
    auto written = ::write(STDOUT_FILENO, "\n", 1); // behind the ^C
  ::_exit(exit_ok);
}

class status_call final : public configured_call {
  void declare_options(option_table& table) override {
    table.about(
      "What a cluster is doing now: what is in flight, whom everybody waits for, how far each rank is and where it is, "
      "how many bytes go by which route, and the nodes. The coordinator answers from what it knows, with its age: also "
      "while a node stands still, nobody is waited for.");
    table
      .positional("HOST:PORT",
                  [this, &table](const std::string& text) {
                    where_ = text;
                    table.configure_by("--node.join=" + text);
                    return caf::error{};
                  })
      .says("the cluster's coordinator, as --join");
    join_option(table);
    key_option(table, "--timeout", "node.join-timeout")
      .says("T", "how long a coordinator that stands still is waited for, as in 30s");
    table.flag("--json", json_)
      .says("one JSON object in a line, with the fields of ClusterStatus in messages/status.proto");
    table.flag("--watch", watch_).says("again every second, until Ctrl-C, which ends it with status 0");
    table.add_example("ringmaster status head:7077 --watch", "a screen to look at while something runs");
    table.closing(
      "\"heard\" says how old what a rank has said is, \"late\" how many of its last answers came too late, "
      "\"queued\" how many commands its stream has. Rates are of the last five seconds.");
  }

  caf::error check() override {
    auto told = values_given("node.join");
    std::erase(told, where_);
    if (where_.empty() || told.empty())
      return caf::none;
    return make_error(errc::invalid_argument,
                      fmt::format("the status of {} or of {}? One coordinator is named, as HOST:PORT or with --join",
                                  where_, told.front()));
  }

  caf::expected<int> run(const console& to) override {
    auto& opts = cfg_.values();
    start_log(opts);
    if (watch_)
      std::signal(SIGINT, end_watch);
    caf::actor_system system{cfg_};
    auto host = coordinator_for("ringmaster status", system, opts, to.err);
    if (!host)
      return std::move(host.error());
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
        continue; // it may still go on: its silence is being told
      if (silence)
        silence->answered();
      if (!status)
        return std::move(status.error());
      tell(*status, coordinator_elsewhere(opts), screen, to.out);
      if (!watch_ || std::ferror(to.out) != 0)
        return exit_ok;
      std::this_thread::sleep_for(between_screens);
    }
  }

  void tell(const proto::ClusterStatus& status, const std::string& coordinator, const terminal& screen,
            std::FILE* out) {
    std::string text;
    if (watch_ && !json_ && screen.is_one())
      text = "\033[H\033[2J"; // in place of the former one
    else if (std::exchange(settings_, true) && !json_)
      text = "\n";
    if (json_)
      text += json_of(status) + "\n";
    else
      for (auto& line : status_text(status, coordinator, utc_offset_now()))
        text += painted(screen, line) + "\n";
    std::fwrite(text.data(), 1, text.size(), out); // fmt::print throws where nobody reads any more
    std::fflush(out);
  }

  static constexpr std::chrono::seconds between_screens{1};
  bool json_ = false, watch_ = false, settings_ = false;
  std::string where_; ///< The coordinator, if no option names it.
};

} // namespace

tool_command status_command() {
  return tool_command::of<status_call>("status", "what a cluster is doing now, and whom it waits for");
}

} // namespace ringmaster
