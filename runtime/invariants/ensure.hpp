#pragma once

#include <functional>
#include <source_location>
#include <string>
#include <string_view>

namespace ringmaster {

// Invariants that stay on in every build. A broken one means that the program itself is wrong: its state cannot be
// trusted, and what it would do next could damage data. So the process logs what must hold, the state of the object
// that found out and the flight recorder, and aborts; other processes see a lost peer and recover. What users, peers,
// files or the operating system can cause is an error (messages/errc.hpp), never an invariant.

/// Logs, then aborts. `state`: of the object that found out; may be empty.
[[noreturn]] void invariant_broken(std::string_view what, const std::string& state, const std::source_location& where);

/// Aborts the process unless `holds`. `what` says what must hold: "a released range was allocated".
inline void ensure(bool holds, std::string_view what,
                   const std::source_location& where = std::source_location::current()) {
  if (!holds) [[unlikely]]
    invariant_broken(what, {}, where);
}

/// The same for an object that can describe itself: `object.state_text()` goes into the log. A class with a member
/// function `ensure` that calls this states its invariants as free functions do.
template <class Object>
void ensure_of(const Object& object, bool holds, std::string_view what,
               const std::source_location& where = std::source_location::current()) {
  if (!holds) [[unlikely]]
    invariant_broken(what, object.state_text(), where);
}

/// `report` is called before the process aborts, and returns lines for the log: the latest events of this process.
/// Thread-safe; reports are kept for the rest of the process, the latest 8.
void report_before_abort(std::function<std::string()> report);

} // namespace ringmaster
