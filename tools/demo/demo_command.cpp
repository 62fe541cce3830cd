#include "tools/demo/demo_command.hpp"

#include "client/cluster.hpp"
#include "runtime/journal/journal_store.hpp"
#include "tools/demo/demo.hpp"
#include "tools/options/program.hpp"

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

} // namespace

int demo_command(const std::vector<std::string>& args) {
  if (wants_help(args, demo_help))
    return 0;
  configuration cfg;
  if (auto problem = cfg.read(args, "config/caf-application.conf"))
    return report(problem, 2);
  auto parsed = parse_demo_options(cfg.remainder);
  if (!parsed)
    return report(parsed.error(), 2);
  auto story = *parsed;
  if (story.seed == 0)
    story.seed = std::random_device{}() % 1000000 + 1;
  auto opts = cfg.values();
  opts.device.count = story.devices;
  opts.device.memory_bytes = std::max<uint64_t>(2 * story.elements * sizeof(double), 1u << 20);
  bool elsewhere = !opts.node.join.empty() || std::getenv("RINGMASTER_COORDINATOR") != nullptr; // it has its own journal
  if (opts.journal.dir.empty() && !elsewhere)
    opts.journal.dir = journal_dir();
  if (opts.log.level == "info")
    opts.log.level = "warn"; // the story tells it
  caf::actor_system system{cfg};
  auto home = cluster::open(system, opts);
  if (!home)
    return report(home.error());
  client user{system, (*home)->coordinator()};
  bool remote = !(*home)->root();
  if (remote && !story.devices_given)
    if (auto info = user.devices(); info && info->devices_size() >= 2)
      story.devices = std::min(story.devices, static_cast<uint32_t>(info->devices_size()));
  if (auto there = user.devices(story.devices, std::chrono::seconds{10}); !there)
    return report(there.error());
  fmt::print("Ringmaster demo: {}, {} {}, seed {}\n\n", remote ? "a cluster of several processes" : "one process",
             story.devices, "simulated devices", story.seed);
  demo acts{user, story};
  auto problem = acts.act_one();
  if (!problem && story.kill)
    problem = acts.act_two();
  if (!problem && user.devices(story.devices, std::chrono::seconds{10}))
    problem = acts.compare_algorithms();
  if (!problem)
    problem = acts.last_lines();
  std::fflush(stdout);
  if (problem) {
    acts.give_back(); // the cluster may be others', too
    return report(problem);
  }
  if (!remote)
    fmt::print("\nThe whole log: ringmaster log {}   (--trace FILE for Perfetto)\n", opts.journal.dir);
  fmt::print("{}\n", acts.right ? "Every result was right." : "A result was WRONG.");
  return acts.right ? 0 : 1;
}

} // namespace ringmaster
