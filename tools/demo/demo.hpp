#pragma once

#include "client/client.hpp"
#include "messages/gpu_sim.pb.h"
#include "runtime/reduction/reduction.hpp"
#include "tools/console/terminal.hpp"
#include "tools/options/option_table.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace ringmaster {

/// The options of `ringmaster demo`.
struct demo_options {
  static constexpr uint32_t devices_min = 2, devices_max = 64;

  uint32_t devices = 8;
  bool devices_given = false;
  uint64_t elements = 1u << 20; ///< float64, on each device
  gpu_sim::ReduceOp op = gpu_sim::SUM;
  std::string algorithm = "ring";
  uint64_t seed = 0; ///< Of inputs, victim and step; 0: a new one each time.
  bool kill = true;
  std::optional<uint32_t> kill_step; ///< Rounds done before the device dies; random if not said.
  std::optional<uint32_t> kill_rank;

  void add_to(option_table& table);
  /// What --device.count says, in place of --devices. Errors: invalid_argument where they differ, and for a number that
  /// --devices does not take.
  caf::error take_device_count(uint64_t count);
  /// Errors: invalid_argument, naming the option, its value and what is allowed.
  caf::error check();

private:
  std::optional<uint32_t> requested_devices_;
};

double ms_since(std::chrono::steady_clock::time_point start);

/// The story that `ringmaster demo` tells on standard output. Each act returns what went wrong, if anything.
class demo {
public:
  /// `joined`: in a cluster of other processes, of which it says how the ranks lie.
  demo(client& user, const demo_options& opts, bool joined)
    : user_(user), options_(opts), joined_(joined), random_(opts.seed) {}

  caf::error act_one();
  caf::error act_two();
  caf::error compare_algorithms();
  caf::error last_lines();
  /// What an act has left behind, if one has: its communicator, its memory, and the fault that has not happened yet,
  /// which could otherwise happen to a later act.
  caf::error give_back();

  bool right = true; ///< Whether every result was.

private:
  using steady = std::chrono::steady_clock;

  struct group {
    gpu_sim::CommInitResponse comm;
    std::vector<uint64_t> addresses = {}; ///< By rank at the start, as the inputs.
    std::vector<std::vector<double>> inputs = {};
    std::vector<uint32_t> alive = {}; ///< The ranks at the start that still belong to it.

    uint32_t size() const { return static_cast<uint32_t>(comm.devices_size()); }
    device_id device(uint32_t rank) const { return id_of(comm.devices(static_cast<int>(rank))); }
    uint64_t address(uint32_t rank) const { return addresses[rank]; }
  };

  void headline(const std::string& text);
  void say(const std::string& what, const std::string& outcome);
  uint64_t bytes() const { return options_.elements * sizeof(double); }

  caf::expected<group> set_up();
  /// Memory for an input, and an output after it.
  caf::error take_memory(group& g);
  caf::error say_layout(const group& g);
  /// The course's sequence of calls; `out_of_place` writes behind the inputs.
  caf::error enqueue(const group& g, const std::string& algorithm, uint64_t count, bool out_of_place);
  /// Until the group is idle. Notes who still belongs to it: any device may be lost at any time.
  caf::expected<gpu_sim::GetCommStatusResponse> poll(group& g, uint64_t& polls);
  static void note_alive(group& g, const gpu_sim::GetCommStatusResponse& status);
  std::vector<double> expected(const group& g, uint64_t count) const;
  caf::error check(const group& g);
  caf::error tell_events(const group& g, uint64_t since_ns);
  caf::expected<double> measure(group& g, const std::string& algorithm, uint64_t count);

  client& user_;
  const demo_options& options_;
  const bool joined_;
  std::mt19937_64 random_;
  terminal term_{stdout};
  communicator_id open_;                              ///< The act's.
  std::vector<std::pair<device_id, uint64_t>> taken_; ///< Its memory.
  device_id doomed_;                                  ///< The device that will be killed; 0: none.
  int section_ = 0;                                   ///< Of the story, so far.
  uint64_t measured_ = 0;                             ///< The communicator of the table: its operations are many.
};

/// Inputs for an all-reduce whose result has the same bits in whatever order it is computed: multiples of 1/1024 for
/// sums, powers of two for products. So the plain loop below judges every algorithm.
std::vector<double> demo_input(gpu_sim::ReduceOp op, uint64_t count, uint64_t seed, uint32_t rank);

/// The serial all-reduce, rank by rank.
std::vector<double> serial_all_reduce(gpu_sim::ReduceOp op, const std::vector<const std::vector<double>*>& inputs);

} // namespace ringmaster
