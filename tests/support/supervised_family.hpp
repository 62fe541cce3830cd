#pragma once

#include "actors/hosts/supervisor.hpp"

#include "tests/support/deterministic_system.hpp"

#include <spdlog/spdlog.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ringmaster::test {

using event_log = std::vector<std::string>; // "+a" a has started, "-a" it has ended

/// Commands to the children.
inline constexpr int32_t end_normally = 0, fail = 1, now_obey = 2, starve = 3;

struct child_options {
  std::string name;
  event_log* log = nullptr;
  bool obstinate = false; ///< Takes exit messages only from `now_obey` on.
};

inline caf::behavior child(caf::event_based_actor* self, const child_options& options) {
  options.log->push_back("+" + options.name);
  self->attach_functor([=](const caf::error&) { options.log->push_back("-" + options.name); });
  if (options.obstinate)
    self->set_exit_handler([](const caf::exit_msg&) {});
  return [=](int32_t what) {
    if (what == now_obey)
      self->quit(caf::exit_reason::user_shutdown);
    else if (what == starve)
      self->quit(make_error(errc::io_error, options.name + " has no room"));
    else
      self->quit(what == fail ? make_error(errc::device_lost, options.name + " broke") : caf::error{});
  };
}

/// A supervisor and its children, which tell when they come and go.
struct supervised_family : deterministic_system {
  supervised_family() { spdlog::set_level(spdlog::level::off); }

  ~supervised_family() {
    stop(top);
    advance(options.stop_timeout); // for the obstinate
    top = nullptr;
    spdlog::set_level(level_before);
  }

  child_spec spec(const std::string& name, restart_kind kind = restart_kind::permanent, bool obstinate = false) {
    return {name,
            [=, this](caf::event_based_actor* parent) {
              return parent->spawn(child, child_options{name, &log, obstinate});
            },
            kind};
  }

  /// Starts a supervisor of `children` under the strategy, as `top`.
  void start(restart_strategy strategy, std::vector<child_spec> children) {
    options.strategy = strategy;
    options.children = std::move(children);
    top = sys.spawn(supervisor, options);
    self->monitor(top);
    deliver_all();
  }

  caf::actor child_of(const caf::actor& parent, const std::string& name) {
    auto found = ask<caf::actor>(parent, caf::get_atom_v, name);
    REQUIRE(found);
    return *found;
  }

  void tell(const std::string& name, int32_t what) {
    self->send(child_of(top, name), what);
    deliver_all();
  }

  /// What was written since the last look.
  event_log news() { return std::exchange(log, {}); }

  /// Why `top` ended; empty while it lives.
  std::optional<caf::error> end() {
    std::optional<caf::error> reason;
    auto none = false;
    while (!none)
      self->receive([&](caf::down_msg& down) { reason = std::move(down.reason); },
                    caf::after(std::chrono::seconds{0}) >> [&] { none = true; });
    return reason;
  }

  spdlog::level::level_enum level_before = spdlog::get_level();
  event_log log;
  supervisor_options options{.name = "top"};
  caf::actor top;
};

} // namespace ringmaster::test
