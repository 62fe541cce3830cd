#pragma once

#include "tests/programs/soak_disk.hpp"
#include "tests/programs/soak_network.hpp"
#include "tools/launch/scratch_directory.hpp"
#include "tools/processes/child_process.hpp"

#include <chrono>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace ringmaster::soak {

using steady = std::chrono::steady_clock;

/// A coordinator and nodes with two devices each, as processes of this host, which are stopped, let go on, killed and
/// replaced, and whose network is cut where each node has a host of its own. What they write goes to files of the
/// scratch directory. Several threads may call it.
class soak_cluster {
public:
  using milliseconds = std::chrono::milliseconds;

  /// How fast one thing follows another.
  struct pace {
    milliseconds gap_min{1000}, gap_spread{3000};
    /// How long a process is stopped, and a cable is out: one of these, the first ones more often.
    std::vector<milliseconds> stops{milliseconds{300}, milliseconds{1000}, milliseconds{3000}, milliseconds{10'000},
                                    milliseconds{30'000}};
    std::vector<milliseconds> cuts{milliseconds{500}, milliseconds{3000}, milliseconds{14'000}};
    milliseconds replaced_after{2000};
    milliseconds restarted_after{500};                         ///< Of the coordinator.
    milliseconds full_for{4000};                               ///< Of the coordinator's disk.
    milliseconds device_gap_min{500}, device_gap_spread{3000}; ///< Between faults of single devices.
    bool harms_coordinator = true;                             ///< It is killed, and its disk is full.
    milliseconds slow_max{20};                                 ///< A slow device takes up to so much longer a round.

    static pace fast() {
      return {.gap_min = milliseconds{60},
              .gap_spread = milliseconds{200},
              .stops = {milliseconds{30}, milliseconds{150}, milliseconds{600}},
              .cuts = {milliseconds{100}, milliseconds{700}},
              .replaced_after = milliseconds{50},
              .restarted_after = milliseconds{20},
              .full_for = milliseconds{200},
              .device_gap_min = milliseconds{400},
              .device_gap_spread = milliseconds{800},
              .harms_coordinator = false,
              .slow_max = milliseconds{3}};
    }
  };

  /// `route`: as `route.use`. `network`: with as many hosts as there are nodes; none: all are on this one. Ends this
  /// process with a sentence where the coordinator does not start.
  /// `disk`: the coordinator's journal and store are on one that can be full, where the system allows that.
  soak_cluster(size_t nodes, const std::string& route, const pace& how_fast, std::optional<soak_network> network,
               bool disk);
  ~soak_cluster();

  /// Of the coordinator, for this process.
  std::string address() const { return fmt::format("127.0.0.1:{}", port_); }
  /// Where they are until the end of this.
  std::string logs() const { return scratch_.path(); }
  /// Keeps them, with the journal, at the path that this returns. No process may start after this.
  std::string keep_logs();

  /// What is due: processes that were stopped go on, those that were killed are replaced. Now and then, drawn from
  /// `random`, another one is stopped or killed, or cables are pulled. Says of each that ended though it was not
  /// killed.
  void advance(std::mt19937_64& random);
  /// A device was killed, hung or slowed, in a process that lives on.
  void note_device_fault(const std::string& what);
  const pace& how_fast() const { return pace_; }
  /// All processes continue.
  void calm();

  struct counts {
    uint64_t kills = 0; ///< Of nodes.
    uint64_t coordinator_kills = 0;
    uint64_t full_disks = 0;
    uint64_t pauses = 0;
    uint64_t cuts = 0;
    uint64_t device_faults = 0;
    uint64_t lost = 0; ///< Processes that ended though they were not killed.
  };
  counts so_far() const;
  /// Whether anything was done to a process since this was last asked.
  bool take_event();
  /// Bytes of the coordinator's process.
  uint64_t coordinator_bytes() const;

private:
  struct member {
    std::string name;
    launch::child_process process;
    size_t host = 0;                              ///< Of a node, where there are several.
    std::optional<steady::time_point> goes_on{};  ///< It is stopped until then.
    std::optional<steady::time_point> replaced{}; ///< It was killed, and another one starts then.
  };

  /// `program`: it, and what it runs under.
  launch::child_process start(const std::string& name, std::vector<std::string> program,
                              const std::vector<std::string>& arguments);
  member start_node(size_t host);
  /// On the port of before, if there was one.
  member start_coordinator();
  void fill_disk();
  void empty_disk();
  /// One of these, the first ones more often.
  static milliseconds draw(std::mt19937_64& random, const std::vector<milliseconds>& lengths);
  void pause(member& x, milliseconds length);
  void pause_all(milliseconds length);
  void cut(size_t host, milliseconds length);
  void kill(member& x);
  void look_for_end(member& x);
  /// Into the file of what was done to whom, and when.
  void note(const std::string& what);

  const std::string route_;
  const pace pace_;
  mutable std::mutex guard_;
  counts counts_;
  bool event_ = false;
  launch::scratch_directory scratch_;
  std::ofstream events_;
  std::optional<soak_network> network_;
  std::map<size_t, steady::time_point> cut_until_; ///< Hosts whose cables are out.
  std::unique_ptr<soak_disk> disk_;
  std::optional<steady::time_point> full_until_;
  steady::time_point disk_empty_since_{};
  uint32_t port_ = 0;
  std::optional<member> coordinator_;
  std::vector<member> nodes_;
  uint64_t nodes_started_ = 0;
  steady::time_point next_event_ = steady::now();
};

/// Bytes of memory that a process has for itself: devices' memories, which it maps, are none of that. 0: there is none.
uint64_t own_bytes(pid_t process);

} // namespace ringmaster::soak
