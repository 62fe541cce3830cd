#pragma once

namespace ringmaster::test {

/// Lines of a shell script that is a program of caf-run: they kill the coordinator's process, which is the launcher's
/// child as well, and say so.
inline constexpr auto kill_coordinator = R"(
  for c in $(cat /proc/$PPID/task/$PPID/children); do
    case $(tr '\0' ' ' < /proc/$c/cmdline) in
      */ringmaster' coordinator '*) kill -9 $c && echo "it was killed" ;;
    esac
  done
)";

} // namespace ringmaster::test
