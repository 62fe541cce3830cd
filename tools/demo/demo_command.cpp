#include "tools/options/commands.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/journal/journal_store.hpp"
#include "runtime/text/quantity_parse.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/clients/cluster_connection.hpp"
#include "tools/clients/free_devices.hpp"
#include "tools/demo/demo.hpp"
#include "tools/demo/web_demo.hpp"
#include "tools/options/configured_call.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <random>
#include <unistd.h>

namespace ringmaster {

namespace {

/// Those of runs that had one of their own and have ended.
void remove_left_behind(const std::filesystem::path& usual) {
  const auto prefix = usual.filename().string() + "-";
  std::error_code ignored;
  for (auto& entry : std::filesystem::directory_iterator{usual.parent_path(), ignored}) {
    auto name = entry.path().filename().string();
    if (!name.starts_with(prefix))
      continue;
    auto process = parse_whole(std::string_view{name}.substr(prefix.size()), 1, INT32_MAX);
    if (process && ::kill(static_cast<pid_t>(*process), 0) != 0 && errno == ESRCH)
      std::filesystem::remove_all(entry.path(), ignored);
  }
}

/// Where the demo's journal goes: one place for all runs of a user, or one of its own while that is in use.
std::string journal_dir() {
  auto dir = std::filesystem::temp_directory_path() / fmt::format("ringmaster-demo-{}", ::getuid());
  std::error_code ignored;
  remove_left_behind(dir);
  auto problem = [&] {
    auto earlier = journal_store::open({dir, journal_sync::never, 1, 0});
    return earlier ? caf::error{} : std::move(earlier.error());
  }();
  if (problem && code_of(problem) == errc::in_use)
    dir += fmt::format("-{}", ::getpid());
  else
    std::filesystem::remove_all(dir, ignored); // that of an earlier run, whole or not
  return dir;
}

/// Of a device: the input and the output.
uint64_t memory_for(const demo_options& story) {
  return 2 * story.elements * sizeof(double);
}

/// What is the story's own, whatever the configuration says.
options settings_of(const demo_options& story, options opts, bool memory_is_given) {
  opts.device.count = story.devices;
  if (!memory_is_given)
    opts.device.memory_bytes = std::max<uint64_t>(memory_for(story), 1u << 20);
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
    table.flag("--web", web_)
      .says("opens a live page of a cluster of three processes, with all-reduces that never end and "
            "a training");
    table.number("--web-port", web_options_.port, 1, 65535)
      .says("P", "where 127.0.0.1 serves the page; any free port if it is in use");
    table.add_example("ringmaster demo --web", "the page in a browser");
    table.common({"--web", "--devices", "--elements", "--op", "--algorithm", "--kill", "--kill-rank", "--seed",
                  "--join"});
  }

  caf::error check() override {
    RETURN_ERROR(check_no_rank());
    if (is_given("device.count"))
      RETURN_ERROR(story_.take_device_count(cfg_.values().device.count));
    RETURN_ERROR(story_.check());
    const auto told = cfg_.values().device.memory_bytes;
    if (!is_given("device.memory-bytes") || memory_for(story_) <= told)
      return caf::none;
    return invalid(fmt::format("--device.memory-bytes={}: --elements {} want {} bytes on each device", told,
                               story_.elements, memory_for(story_)));
  }

  caf::expected<int> run(const console& to) override {
    if (web_)
      return show_page();
    if (story_.seed == 0)
      story_.seed = std::random_device{}() % 1000000 + 1;
    auto opts = settings_of(story_, cfg_.values(), is_given("device.memory-bytes"));
    const bool joined = !coordinator_elsewhere(opts).empty();
    caf::actor_system system{cfg_};
    TRY(home, open_cluster("ringmaster demo", system, opts, to.err));
    client user{system, (*home)->coordinator()};
    RETURN_ERROR(joined ? take_what_is_there(user, opts.node.join_timeout, to.err) : caf::error{});
    fmt::print("Ringmaster demo: {}, {} simulated devices, seed {}\n\n",
               joined ? "a cluster of several processes" : "one process", story_.devices, story_.seed);
    TRY(right, tell(user, joined));
    if (!joined)
      fmt::print("\nThe whole log: ringmaster log {}   (--trace FILE for Perfetto{})\n", opts.journal.dir,
                 program_invocation_short_name == std::string_view{"ringmaster"} ? ""
                                                                                 : "; ./run build makes ringmaster");
    fmt::print("{}\n", *right ? "Every result was right." : "A result was WRONG.");
    return *right ? exit_ok : exit_failed;
  }

  /// On the cluster of --join or the environment, or else on one that is started for it.
  caf::expected<int> show_page() {
    if (const auto where = coordinator_elsewhere(cfg_.values()); !where.empty())
      return run_web_demo(where, web_options_);
    return start_cluster_around({"--web", fmt::format("--web-port={}", web_options_.port)});
  }

  /// Of a cluster of other processes.
  caf::error take_what_is_there(client& user, caf::timespan patience, std::FILE* err) {
    TRY(there,
        await_free(user, "demo", story_.devices_given ? story_.devices : demo_options::devices_min, patience, err));
    auto free = free_devices(*there);
    story_.devices = static_cast<uint32_t>(std::min<size_t>(story_.devices, free.size()));
    RETURN_ERROR(story_.check());
    const auto memory = least_memory_bytes(free);
    if (memory_for(story_) <= memory)
      return caf::none;
    return make_error(errc::out_of_memory,
                      fmt::format("--elements {}: the devices of this cluster have {}, which is enough for {}",
                                  story_.elements, bytes_text(memory), memory / (2 * sizeof(double))));
  }

  /// Whether every result was right.
  caf::expected<bool> tell(client& user, bool joined) {
    constexpr auto patience = std::chrono::seconds{10}; // until a new device is in the dead one's place
    demo acts{user, story_, joined};
    TRY(before, user.devices());
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
  bool web_ = false;
  web_demo_options web_options_;
};

} // namespace

tool_command demo_command() {
  return tool_command::of<demo_call>("demo", "an all-reduce on simulated devices, with one that dies in the middle");
}

} // namespace ringmaster
