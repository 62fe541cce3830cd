#include "tools/cluster/serving_process.hpp"

#include "actors/calls/await_down.hpp"
#include "messages/try.hpp"
#include "tools/console/ending_signals.hpp"
#include "tools/console/own_memory.hpp"

#include <spdlog/spdlog.h>

#include <cstring>
#include <utility>

namespace ringmaster {

int signal_to_stop() {
  const auto signal = ending_signal();
  if (signal != 0)
    spdlog::info("ends on signal {}", strsignal(signal));
  return signal;
}

caf::expected<int> run_until_ended(caf::scoped_actor& self, const caf::actor_addr& vital,
                                   const std::function<caf::error()>& now_and_then,
                                   const std::function<void(const caf::down_msg&)>& other_down) {
  constexpr auto look_every = std::chrono::milliseconds{250}; // an idle process should rarely wake
  freed_memory freed;
  for (;;) {
    if (auto down = await_down(*self, look_every)) {
      if (down->source == vital)
        return std::move(down->reason);
      other_down(*down);
    }
    if (const auto signal = signal_to_stop())
      return signal;
    RETURN_ERROR(now_and_then());
    freed.give_back_now_and_then();
  }
}

} // namespace ringmaster
