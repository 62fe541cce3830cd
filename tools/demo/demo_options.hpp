#pragma once

#include "runtime/reduction/reduction.hpp"
#include "tools/options/option_table.hpp"

#include <cstdint>
#include <optional>
#include <string>

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

} // namespace ringmaster
