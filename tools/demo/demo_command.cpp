#include "tools/demo/demo_command.hpp"

#include "messages/errc.hpp"
#include "runtime/journal/journal_store.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/clients/cluster_connection.hpp"
#include "tools/clients/free_devices.hpp"
#include "tools/demo/demo.hpp"
#include "tools/options/configured_call.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <random>
#include <unistd.h>

namespace ringmaster {

namespace {

/// Where the demo's journal goes: one place for all runs of a user, or one of its own while that is in use.
std::string journal_dir() {
  auto dir = std::filesystem::temp_directory_path() / fmt::format("ringmaster-demo-{}", ::getuid());
  std::error_code ignored;
  if (journal_store::open({dir, journal_sync::never, 1, 0}))
    std::filesystem::remove_all(dir, ignored); // that of an earlier run
  else if (std::filesystem::exists(dir))
    dir += fmt::format("-{}", ::getpid());
  return dir;
}

/// What is the story's own, whatever the configuration says.
options settings_of(const demo_options& story, options opts) {
  opts.device.count = story.devices;
  opts.device.memory_bytes = std::max<uint64_t>(2 * story.elements * sizeof(double), 1u << 20);
  if (opts.journal.dir.empty() && coordinator_elsewhere(opts).empty()) // another process has its own
    opts.journal.dir = journal_dir();
  if (opts.log.level == "info")
    opts.log.level = "warn"; // the story tells it
  return opts;
}

class demo_call final : public configured_call {
  void declare_options(option_table& table) override {
    story_.add_to(table);
    join_options(table);
  }

  caf::error check() override {
    if (is_told("device.count"))
      if (auto problem = story_.take_device_count(cfg_.values().device.count))
        return problem;
    return story_.check();
  }

  caf::expected<int> run(const console& to) override {
    if (story_.seed == 0)
      story_.seed = std::random_device{}() % 1000000 + 1;
    auto opts = settings_of(story_, cfg_.values());
    const bool joined = !coordinator_elsewhere(opts).empty();
    caf::actor_system system{cfg_};
    auto home = open_cluster("ringmaster demo", system, opts, to.err);
    if (!home)
      return std::move(home.error());
    client user{system, (*home)->coordinator()};
    if (auto problem = joined ? take_what_is_there(user, opts.node.join_timeout, to.err) : caf::error{})
      return problem;
    fmt::print("Ringmaster demo: {}, {} simulated devices, seed {}\n\n",
               joined ? "a cluster of several processes" : "one process", story_.devices, story_.seed);
    auto right = tell(user, joined);
    if (!right)
      return std::move(right.error());
    if (!joined)
      fmt::print("\nThe whole log: ringmaster log {}   (--trace FILE for Perfetto)\n", opts.journal.dir);
    fmt::print("{}\n", *right ? "Every result was right." : "A result was WRONG.");
    return *right ? exit_ok : exit_failed;
  }

  /// Of a cluster of other processes.
  caf::error take_what_is_there(client& user, caf::timespan patience, std::FILE* err) {
    auto there = await_free(user, "demo", story_.devices_given ? story_.devices : demo_options::devices_min, patience,
                            err);
    if (!there)
      return std::move(there.error());
    auto free = free_devices(*there);
    story_.devices = static_cast<uint32_t>(std::min<size_t>(story_.devices, free.size()));
    if (auto problem = story_.check())
      return problem;
    constexpr auto element = 2 * sizeof(double); // of the input, and of the output
    const auto memory = least_memory_bytes(free);
    if (story_.elements * element <= memory)
      return caf::none;
    return make_error(errc::out_of_memory,
                      fmt::format("--elements {}: the devices of this cluster have {}, which is enough for {}",
                                  story_.elements, bytes_text(memory), memory / element));
  }

  /// Whether every result was right.
  caf::expected<bool> tell(client& user, bool joined) {
    constexpr auto patience = std::chrono::seconds{10}; // until a new device is in the dead one's place
    demo acts{user, story_, joined};
    auto before = user.devices();
    if (!before)
      return std::move(before.error());
    auto problem = acts.act_one();
    if (!problem && story_.kill)
      problem = acts.act_two();
    if (!problem) {
      if (auto whole = user.devices(static_cast<uint32_t>(before->devices_size()), patience))
        problem = acts.compare_algorithms();
      else
        fmt::print("{}\n\n", render(whole.error()));
    }
    if (!problem)
      problem = acts.last_lines();
    if (!problem)
      return acts.right;
    acts.give_back(); // the cluster may be others', too
    return problem;
  }

  demo_options story_;
};

} // namespace

tool_command demo_command() {
  return tool_command::of<demo_call>("demo", "an all-reduce on simulated devices, with one that dies in the middle");
}

} // namespace ringmaster
