#include "tools/launch/launch_words.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

namespace ringmaster::launch {

void say(const std::string& text) {
  write_to_standard_error("caf-run: " + text + "\n");
}

std::string in_seconds(std::chrono::milliseconds duration) {
  return fmt::format("{:g} s", static_cast<double>(duration.count()) / 1000);
}

bool ended(const watched_process* process) {
  return process != nullptr && !process->running();
}

watched_process* start_or_say(process_watch& watch, const std::string& name, child_spec spec,
                              watched_process::output_use use) {
  auto process = watch.start(name, std::move(spec), use);
  if (process)
    return *process;
  say(fmt::format("{}: {}", name, render(process.error())));
  return nullptr;
}

} // namespace ringmaster::launch
