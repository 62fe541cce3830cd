#include "tools/demo/demo_command.hpp"

#include "client/cluster.hpp"
#include "runtime/journal/journal_store.hpp"
#include "tools/demo/demo.hpp"
#include "tools/options/configured_call.hpp"

#include <algorithm>
#include <cstdlib>
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
  bool elsewhere = !opts.node.join.empty()
                   || std::getenv("RINGMASTER_COORDINATOR") != nullptr; // it has its own journal
  if (opts.journal.dir.empty() && !elsewhere)
    opts.journal.dir = journal_dir();
  if (opts.log.level == "info")
    opts.log.level = "warn"; // the story tells it
  return opts;
}

class demo_call final : public configured_call {
  void declare_options(option_table& table) override { story_.add_to(table); }
  caf::error check() override {
    if (is_told("device.count"))
      if (auto problem = story_.take_device_count(cfg_.values().device.count))
        return problem;
    return story_.check();
  }

  caf::expected<int> run(const console&) override {
    if (story_.seed == 0)
      story_.seed = std::random_device{}() % 1000000 + 1;
    auto opts = settings_of(story_, cfg_.values());
    caf::actor_system system{cfg_};
    auto home = cluster::open(system, opts);
    if (!home)
      return std::move(home.error());
    client user{system, (*home)->coordinator()};
    bool remote = !(*home)->root();
    if (remote && !story_.devices_given)
      if (auto info = user.devices(); info && info->devices_size() >= 2)
        story_.devices = std::min(story_.devices, static_cast<uint32_t>(info->devices_size()));
    if (auto there = user.devices(story_.devices, std::chrono::seconds{10}); !there)
      return std::move(there.error());
    fmt::print("Ringmaster demo: {}, {} simulated devices, seed {}\n\n",
               remote ? "a cluster of several processes" : "one process", story_.devices, story_.seed);
    auto right = tell(user);
    if (!right)
      return std::move(right.error());
    if (!remote)
      fmt::print("\nThe whole log: ringmaster log {}   (--trace FILE for Perfetto)\n", opts.journal.dir);
    fmt::print("{}\n", *right ? "Every result was right." : "A result was WRONG.");
    return *right ? exit_ok : exit_failed;
  }

  /// Whether every result was right.
  caf::expected<bool> tell(client& user) {
    demo acts{user, story_};
    auto problem = acts.act_one();
    if (!problem && story_.kill)
      problem = acts.act_two();
    if (!problem && user.devices(story_.devices, std::chrono::seconds{10}))
      problem = acts.compare_algorithms();
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
