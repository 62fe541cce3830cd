#pragma once

#include "runtime/health/restart_intensity.hpp"

#include <caf/actor.hpp>
#include <caf/behavior.hpp>
#include <caf/error.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/timespan.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster {

/// Whether a child that has ended is started again.
enum class restart_kind : uint8_t {
  permanent, ///< Always.
  transient, ///< Unless it ended on purpose: exit_reason::normal or user_shutdown.
  temporary  ///< Never, and it has no say in what becomes of the others.
};

/// Who is started again with a child that failed.
enum class restart_strategy : uint8_t {
  one_for_one, ///< Only that child.
  one_for_all, ///< All children.
  rest_for_one ///< That child and those that were started after it.
};

struct child_spec {
  std::string name{};
  /// Spawns the child, by the supervisor that it is given. An invalid handle, or a throw, is a failure.
  std::function<caf::actor(caf::event_based_actor* supervisor)> start;
  restart_kind restart = restart_kind::permanent;
};

struct supervisor_options {
  std::string name{};
  restart_strategy strategy = restart_strategy::one_for_one;
  uint32_t restarts_max = restart_intensity::options{}.restarts_max; ///< Within `period`; one more and it gives up.
  caf::timespan period = restart_intensity::options{}.period;
  /// What a failure of a child says of its next start. Null: each counts.
  std::function<restart_verdict(const caf::error& reason)> judge{};
  caf::timespan stop_timeout = std::chrono::seconds{5}; ///< Then a child that was asked to stop is killed.
  std::vector<child_spec> children{};                   ///< In the order of their start.
};

struct supervised_child {
  enum class phase : uint8_t {
    running,
    condemned, ///< To be ended, in its turn. Starts again afterwards unless the supervisor itself ends.
    waiting,   ///< Ended, to be started again.
    delayed,   ///< The same, but not yet.
    ended      ///< For good.
  };

  child_spec spec;
  caf::actor handle; ///< Strong: a weak one would let the child be collected.
  phase now = phase::ended;
  bool has_run = false; ///< It failed in another way than starved, once.
  uint32_t starved = 0; ///< Times in a row.
};

struct supervisor_state {
  const char* name = "supervisor";

  /// Children must not outlive a supervisor that was killed.
  ~supervisor_state();

  supervisor_options options;
  std::optional<restart_intensity> intensity;
  std::vector<supervised_child> children;
  std::optional<size_t> stopping;   ///< The one child that was asked to stop and has not ended.
  bool killing = false;             ///< ... and was then killed.
  uint64_t stop_number = 0;         ///< Tells the limits of the stops apart.
  std::optional<caf::error> ending; ///< Why the supervisor ends.
};

/// Starts its children in order, monitors them, and starts again what fails, by its strategy. Before it starts
/// anything again it ends the others concerned, last one first, and waits until each is down. A child that has run and
/// is starved now waits before it is started again, `period` at most, however often that happens: what lives goes on.
/// One that has never run counts as failed then, so that what can never run is said at once.
///
///   running --a child fails--> stopping --all concerned are down--> starting --> running
///      \--exit message, too many restarts, a start that fails--> stopping all --> quits
///
/// It ends with its children, last one first: with the reason of an exit message, or, after more than
/// `restarts_max` restarts in a period and where a child cannot be started, with errc::gave_up and a sentence,
/// which its own supervisor sees as a failure. A child that does not end within `stop_timeout` is killed, and after
/// as long again abandoned.
///
/// Messages: (caf::get_atom) answers all handles as a std::vector<caf::actor>, in the order of the children, and
/// (caf::get_atom, std::string name) the handle of one; an invalid handle where it is not running.
/// Errors: invalid_argument for an unknown name.
caf::behavior supervisor(caf::stateful_actor<supervisor_state>* self, supervisor_options options);

} // namespace ringmaster
