#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/cluster/device_words.hpp"
#include "tools/cluster/joined_call.hpp"
#include "tools/options/commands.hpp"

#include <fmt/format.h>

#include <optional>

namespace ringmaster {

namespace {

/// A call that injects a fault: the device and the time.
class fault_call : public joined_call {
protected:
  fault_call(const char* command, proto::FaultRequest::Kind kind) : joined_call(command) { fault_.set_kind(kind); }

  void fault_options(option_table& table) {
    join_option(table);
    table.number("--at-step", at_step_, 0, UINT32_MAX)
      .says("N", "in the device's next collective, after N of its rounds, instead of now");
    timeout_option(table);
    table.closing("`ringmaster status` lists the devices, and shows the effect.");
  }

  caf::error take_device(const std::string& text) {
    TRY(id, parse_device(text));
    device_ = *id;
    return caf::none;
  }

  caf::error check() override {
    if (device_ == device_id{})
      return invalid(fmt::format("name the device: {} 0x4; `ringmaster status` lists devices", command()));
    return caf::none;
  }

  caf::expected<int> run_with(client& user, const console& to) override {
    TRY(cluster, user.info());
    TRY(who, device_words(*cluster, device_));
    if (at_step_) {
      fault_.set_at_step(true);
      fault_.set_step(static_cast<uint32_t>(*at_step_));
    }
    RETURN_ERROR(user.inject(device_, fault_));
    auto when = at_step_ ? fmt::format(" in its next collective, when {} of it {} done", counted(*at_step_, "round"),
                                       *at_step_ == 1 ? "is" : "are")
                         : "";
    fmt::print(to.out, "{}: {}{}\n", *who, what(), when);
    return exit_ok;
  }

  /// "hangs"
  virtual std::string what() const = 0;

  proto::FaultRequest fault_;

private:
  device_id device_;
  std::optional<uint64_t> at_step_;
};

class kill_call final : public fault_call {
public:
  kill_call() : fault_call("ringmaster kill", proto::FaultRequest::KILL) {}

private:
  void declare_options(option_table& table) override {
    table.about("Kills a device of a running cluster. Its process goes on and starts a new device.");
    table.positional("DEVICE", [this](const std::string& text) { return take_device(text); })
      .says("its number, such as 0x4 or 4")
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
    table.about("Hangs a device of a running cluster: it never answers again, until it is given up and removed. With "
                "--for it is only paused: a short pause delays operations, after a long one the device is lost.");
    table.positional("DEVICE", [this](const std::string& text) { return take_device(text); })
      .says("its number, such as 0x4 or 4")
      .needed();
    table.duration("--for", for_ps_).says("T", "it continues after this time, such as 5s");
    fault_options(table);
    table.add_example("ringmaster hang 0x4 --for 300ms", "a pause that is too short for a loss");
  }
  caf::error check() override {
    if (for_ps_ && *for_ps_ < 1000)
      return invalid("--for must be at least 1ns, such as 5s");
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
    table.about("Slows a device of a running cluster down: every round of its collectives starts later by DELAY. 0 "
                "restores its speed.");
    table.positional("DEVICE DELAY", [this](const std::string& text) { return take(text); })
      .says("the device's number, such as 0x4 or 4, and the delay, such as 5ms")
      .many();
    fault_options(table);
    table.add_example("ringmaster slow 0x4 20ms", "20 ms more for every round");
  }

  caf::error take(const std::string& text) {
    if (words_++ == 0)
      return take_device(text);
    if (words_ > 2)
      return invalid(fmt::format("\"{}\" is one argument too many after DEVICE DELAY", text));
    TRY(delay_ps, parse_duration_ps(text));
    fault_.set_delay_ns(static_cast<uint64_t>(*delay_ps) / 1000);
    return caf::none;
  }

  caf::error check() override {
    if (words_ == 1)
      return invalid("name the delay: ringmaster slow DEVICE DELAY, such as 5ms, or 0");
    return fault_call::check();
  }

  std::string what() const override {
    return fault_.delay_ns() == 0 ? "is as fast as before"
                                  : fmt::format("starts every round {} later", duration_text(fault_.delay_ns()));
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
