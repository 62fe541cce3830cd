#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/text/quantity_parse.hpp"
#include "tools/cluster/info_text.hpp"
#include "tools/cluster/joined_call.hpp"
#include "tools/options/commands.hpp"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <set>

namespace ringmaster {

namespace {

class drain_call final : public joined_call {
public:
  drain_call() : joined_call("ringmaster drain") {}

private:
  void declare_options(option_table& table) override {
    table.about("Removes a node from a cluster without losing work. New communicators do not get its devices. Its "
                "ranks leave when the operations in flight have finished: under \"shrink\" the other ranks go on, "
                "under \"replace\" spares take over with a copy of the memory. For a communicator with the policy "
                "\"abort\" it waits until that is destroyed. Then the node's process exits with status 0.");
    table
      .positional("NODE",
                  [this](const std::string& text) {
                    node_ = text;
                    return caf::error{};
                  })
      .says("the node's name, as in `ringmaster status`")
      .needed();
    join_option(table);
    table.duration("--timeout", limit_ps_).says("T", "how long to wait for the node's exit");
    table.closing("The exit status is 0 if the node has exited. After the timeout it reports what it waited for. If "
                  "ranks remain, the node is no longer drained, and ranks that have left do not return. A node that "
                  "was asked to exit still does so.");
  }

  caf::error check() override {
    if (node_.empty())
      return invalid("name the node: ringmaster drain NODE; `ringmaster status` lists the nodes");
    if (limit_ps_ <= 0)
      return invalid("--timeout must be more than 0, such as 30s");
    return caf::none;
  }

  caf::expected<int> run_with(client& user, const console& to) override {
    TRY(done, user.drain(node_, std::chrono::nanoseconds{limit_ps_ / 1000}));
    for (auto& line : *done)
      fmt::print(to.out, "{}\n", line);
    fmt::print(to.out, "node {} has ended\n", node_);
    return exit_ok;
  }

  std::string node_;
  int64_t limit_ps_ = 60'000'000'000'000;
};

class destroy_call final : public joined_call {
public:
  destroy_call() : joined_call("ringmaster destroy") {}

private:
  void declare_options(option_table& table) override {
    table.form("N... | all [options]");
    table.about("Destroys communicators of any client: their operations in flight fail, and their devices become free. "
                "`ringmaster info` lists communicators.");
    table.positional("N", [this](const std::string& text) { return take(text); })
      .says("the numbers of communicators, or all")
      .offers({"all"})
      .many();
    join_option(table);
    timeout_option(table);
    table.closing("The exit status is 0 if all of them are destroyed.");
  }

  caf::error take(const std::string& text) {
    if (text == "all") {
      all_ = true;
      return caf::none;
    }
    auto number = parse_whole(text, 1);
    if (!number)
      return invalid("name a communicator: " + render(number.error()));
    communicators_.insert(communicator_id{*number});
    return caf::none;
  }

  caf::error check() override {
    if (all_ == communicators_.empty())
      return caf::none;
    return invalid("give the numbers of communicators, or \"all\"; `ringmaster info` lists them");
  }

  caf::expected<int> run_with(client& user, const console& to) override {
    if (all_) {
      TRY(cluster, user.info());
      communicators_ = communicators_of(*cluster);
      if (communicators_.empty())
        fmt::print(to.out, "there is no communicator\n");
    }
    int status = exit_ok;
    for (auto id : communicators_)
      if (auto problem = user.destroy(id)) {
        fmt::print(to.err, "{}: {}\n", command(), render(problem));
        status = exit_failed;
      } else {
        fmt::print(to.out, "communicator {} is destroyed, its devices are free\n", id);
      }
    return status;
  }

  std::set<communicator_id> communicators_;
  bool all_ = false;
};

class absent_call final : public joined_call {
public:
  absent_call() : joined_call("ringmaster absent") {}

private:
  void declare_options(option_table& table) override {
    table.form("RANK:CAUSE... [options]");
    table.about("For launchers: reports that the processes of these ranks have exited. Ranks that wait for one of them "
                "to join fail at once, with the cause, and not after their timeout; nothing else changes. `caf-run` "
                "calls this for the ranks that it starts.");
    table.positional("RANK:CAUSE", [this](const std::string& text) { return take(text); })
      .says("a rank's number and the cause, such as \"3:it exited with status 1\"")
      .many();
    join_option(table);
    table.text("--group", group_).says("NAME", "the group that the ranks join").otherwise("world");
    timeout_option(table);
  }

  caf::error take(const std::string& text) {
    auto colon = text.find(':');
    auto number = parse_whole(text.substr(0, colon), 0, UINT32_MAX);
    if (!number || colon == std::string::npos || colon + 1 == text.size())
      return invalid(fmt::format("\"{}\" is not a rank with a cause, such as \"3:it exited with status 1\"", text));
    causes_[static_cast<uint32_t>(*number)] = text.substr(colon + 1);
    return caf::none;
  }

  caf::error check() override {
    return causes_.empty() ? invalid("name the rank and the cause: ringmaster absent 3:CAUSE") : caf::error{};
  }

  caf::expected<int> run_with(client& user, const console&) override {
    for (auto& [rank, cause] : causes_)
      RETURN_ERROR(user.tell_absent(group_, rank, cause));
    return exit_ok;
  }

  std::map<uint32_t, std::string> causes_;
  std::string group_ = "world";
};

} // namespace

tool_command drain_command() {
  return tool_command::of<drain_call>("drain", "removes a node without losing work");
}

tool_command destroy_command() {
  return tool_command::of<destroy_call>("destroy", "destroys communicators");
}

tool_command absent_command() {
  return tool_command::of<absent_call>("absent", "reports ranks whose processes have exited, for launchers");
}

} // namespace ringmaster
