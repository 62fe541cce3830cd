#pragma once

#include "tools/launch/scratch_directory.hpp"
#include "tools/processes/child_process.hpp"

#include <array>
#include <chrono>
#include <fstream>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace ringmaster::soak {

using steady = std::chrono::steady_clock;

/// A coordinator and nodes with two devices each, as processes of this host, which are stopped, let go on, killed and
/// replaced. What they write goes to files of the scratch directory. Several threads may call it.
class soak_cluster {
public:
  using milliseconds = std::chrono::milliseconds;

  /// How fast one thing follows another.
  struct pace {
    milliseconds gap_min{1000}, gap_spread{3000};
    std::array<milliseconds, 3> stops{milliseconds{300}, milliseconds{1000}, milliseconds{3000}};
    milliseconds replaced_after{2000};

    static pace fast() {
      return {milliseconds{60},
              milliseconds{200},
              {milliseconds{30}, milliseconds{150}, milliseconds{600}},
              milliseconds{50}};
    }
  };

  /// `route`: as `route.use`. Ends this process with a sentence where the coordinator does not start.
  soak_cluster(size_t nodes, const std::string& route, const pace& how_fast);
  ~soak_cluster();

  std::string address() const { return address_; }
  /// Where they are until the end of this.
  std::string logs() const { return scratch_.path(); }
  /// They stay, with the journal, at the path that this returns; no process starts any more.
  std::string keep_logs() { return scratch_.keep(); }

  /// What is due: processes that were stopped go on, those that were killed are replaced. Now and then, drawn from
  /// `random`, another one is stopped or killed. Says of each that ended though nobody had touched it.
  void advance(std::mt19937_64& random);
  /// Everybody goes on.
  void calm();

  struct counts {
    uint64_t kills = 0;
    uint64_t pauses = 0;
    uint64_t lost = 0; ///< Processes that ended though nobody had ended them.
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
    std::optional<steady::time_point> goes_on{};  ///< It is stopped until then.
    std::optional<steady::time_point> replaced{}; ///< It was killed, and another one starts then.
  };

  launch::child_process start(const std::string& name, std::vector<std::string> arguments);
  member start_node();
  void pause(member& x, milliseconds length);
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
  std::string address_;
  std::optional<member> coordinator_;
  std::vector<member> nodes_;
  uint64_t nodes_started_ = 0;
  steady::time_point next_event_ = steady::now();
};

/// Bytes of memory that a process has for itself: devices' memories, which it maps, are none of that. 0: there is none.
uint64_t own_bytes(pid_t process);

} // namespace ringmaster::soak
