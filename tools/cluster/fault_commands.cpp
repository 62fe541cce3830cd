#include "tools/cluster/fault_commands.hpp"

#include "actors/configuration/log.hpp"
#include "client/client.hpp"
#include "messages/errc.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/clients/cluster_connection.hpp"
#include "tools/cluster/device_words.hpp"
#include "tools/options/configured_call.hpp"

#include <fmt/format.h>

#include <optional>

namespace ringmaster {

namespace {

/// What the three have in common: which device, when, and what is said of it.
class fault_call : public configured_call {
protected:
  fault_call(const char* command, proto::FaultRequest::Kind kind) : command_(command) { fault_.set_kind(kind); }

  void fault_options(option_table& table) {
    join_option(table);
    table.number("--at-step", at_step_, 0, UINT32_MAX)
      .says("N", "not now, but in the device's next collective, when so many rounds of it are done");
    key_option(table, "--timeout", "node.join-timeout").says("T", "how long to look for the coordinator, as in 30s");
    table.closing("`ringmaster status` shows which devices there are, and what comes of it.");
  }

  caf::error take_device(const std::string& text) {
    auto id = parse_device(text);
    if (!id)
      return std::move(id.error());
    device_ = *id;
    return caf::none;
  }

  caf::error check() override {
    if (device_ == device_id{})
      return make_error(errc::invalid_argument,
                        fmt::format("which device? {} 0x4; `ringmaster status` says which there are", command_));
    return caf::none;
  }

  caf::expected<int> run(const console& to) override {
    start_log(cfg_.values());
    caf::actor_system system{cfg_};
    auto host = coordinator_for(command_, system, cfg_.values(), to.err);
    if (!host)
      return std::move(host.error());
    client user{system, *host};
    auto cluster = user.info();
    if (!cluster)
      return std::move(cluster.error());
    auto who = device_words(*cluster, device_);
    if (!who)
      return std::move(who.error());
    if (at_step_) {
      fault_.set_at_step(true);
      fault_.set_step(static_cast<uint32_t>(*at_step_));
    }
    if (auto problem = user.inject(device_, fault_))
      return problem;
    auto when = at_step_ ? fmt::format(" in its next collective, when {} of it {} done", counted(*at_step_, "round"),
                                       *at_step_ == 1 ? "is" : "are")
                         : "";
    fmt::print(to.out, "{}: {}{}\n", *who, what(), when);
    return exit_ok;
  }

  /// What the fault makes the device do.
  virtual std::string what() const = 0;

  proto::FaultRequest fault_;

private:
  const char* command_;
  device_id device_;
  std::optional<uint64_t> at_step_;
};

class kill_call final : public fault_call {
public:
  kill_call() : fault_call("ringmaster kill", proto::FaultRequest::KILL) {}

private:
  void declare_options(option_table& table) override {
    table.about("Kills a device of a running cluster: its process goes on, and starts a fresh one in its place.");
    table.positional("DEVICE", [this](const std::string& text) { return take_device(text); })
      .says("its number, as 0x4 or 4")
      .needed();
    fault_options(table);
  }
  std::string what() const override { return "dies"; }
};

class hang_call final : public fault_call {
public:
  hang_call() : fault_call("ringmaster hang", proto::FaultRequest::HANG) {}

private:
  void declare_options(option_table& table) override {
    table.about(
      "Hangs a device of a running cluster: it never answers again, until it is given up and ended. Or for a "
      "while only, as if it had been stopped: a short one costs no more than that time, a long one the device.");
    table.positional("DEVICE", [this](const std::string& text) { return take_device(text); })
      .says("its number, as 0x4 or 4")
      .needed();
    table.duration("--for", for_ps_).says("T", "it goes on after so long, as in 5s; without: never");
    fault_options(table);
    table.add_example("ringmaster hang 0x4 --for 300ms", "too short for anybody to give it up");
  }
  caf::error check() override {
    if (for_ps_ && *for_ps_ < 1000)
      return make_error(errc::invalid_argument, "--for says for how long, as in 5s: at least 1ns");
    fault_.set_delay_ns(static_cast<uint64_t>(for_ps_.value_or(0)) / 1000);
    return fault_call::check();
  }
  std::string what() const override {
    return for_ps_ ? fmt::format("hangs for {}", duration_text(fault_.delay_ns())) : "hangs";
  }

  std::optional<int64_t> for_ps_;
};

class slow_call final : public fault_call {
public:
  slow_call() : fault_call("ringmaster slow", proto::FaultRequest::SLOW) {}

private:
  void declare_options(option_table& table) override {
    table.form("DEVICE DELAY [options]");
    table.about(
      "Slows a device of a running cluster down: every round of its collectives begins so much later. 0 makes "
      "it as fast as before.");
    table.positional("DEVICE DELAY", [this](const std::string& text) { return take(text); })
      .says("the device's number, as 0x4 or 4, and how long, as 5ms")
      .many();
    fault_options(table);
    table.add_example("ringmaster slow 0x4 20ms", "20 ms more for every round");
  }

  caf::error take(const std::string& text) {
    if (words_++ == 0)
      return take_device(text);
    if (words_ > 2)
      return make_error(errc::invalid_argument, fmt::format("\"{}\" is one word too many: DEVICE DELAY", text));
    auto delay_ps = parse_duration_ps(text);
    if (!delay_ps)
      return std::move(delay_ps.error());
    fault_.set_delay_ns(static_cast<uint64_t>(*delay_ps) / 1000);
    return caf::none;
  }

  caf::error check() override {
    if (words_ == 1)
      return make_error(errc::invalid_argument, "how slow? ringmaster slow DEVICE DELAY, as in 5ms; 0: as before");
    return fault_call::check();
  }

  std::string what() const override {
    return fault_.delay_ns() == 0 ? "is as fast as before"
                                  : fmt::format("begins every round {} later", duration_text(fault_.delay_ns()));
  }

  int words_ = 0;
};

} // namespace

tool_command kill_command() {
  return tool_command::of<kill_call>("kill", "kills a device of a running cluster");
}

tool_command hang_command() {
  return tool_command::of<hang_call>("hang", "hangs a device of a running cluster");
}

tool_command slow_command() {
  return tool_command::of<slow_call>("slow", "slows a device of a running cluster down");
}

} // namespace ringmaster
