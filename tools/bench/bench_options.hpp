#pragma once

#include "messages/collective.pb.h"
#include "runtime/schedule/schedule_json.hpp"
#include "tools/options/collective_options.hpp"

#include <caf/expected.hpp>

#include <optional>
#include <string>
#include <vector>

namespace ringmaster {

struct bench_options {
  proto::CollectiveKind kind = proto::ALL_REDUCE;
  std::string algorithm = "auto"; ///< "all": every one of the kind.
  uint32_t devices = 8;
  bool devices_given = false; ///< Else all free devices of another cluster.
  uint64_t min_bytes = 8;
  uint64_t max_bytes = 64u << 20;
  bool max_bytes_given = false; ///< Else limited by the memory of another cluster.
  uint64_t factor = 8;
  proto::DataType datatype = proto::FLOAT32;
  gpu_sim::ReduceOp op = gpu_sim::SUM;
  uint32_t root = 0;
  uint32_t peer = 1;
  uint32_t iterations = 0; ///< 0: by size.
  uint32_t samples = 20;
  uint32_t warmups = 2;     ///< Warm-up samples.
  uint64_t chunk_count = 0; ///< Elements; 0: chosen for the network.
  bool in_place = false;
  bool uneven = false; ///< Ranks' blocks have different sizes.
  bool deterministic = false;
  bool single = false; ///< Waits after each call, instead of calling back to back.
  bool no_memory_limit = false;
  bool wide = false; ///< The table shows all columns.
  std::string json;  ///< A file; empty: none.
  /// Proved schedules of a file, in place of an algorithm. Kind, devices, root, peer and sizes are the file's.
  std::optional<schedule_set> written;
};

/// The collective of the options with `count` elements.
proto::Collective collective_of(const bench_options& x, uint64_t count);

/// Reads them from the command line. Must not move after `add_to`.
class bench_arguments {
public:
  static constexpr uint32_t devices_min = 2, devices_max = 1024;

  void add_to(option_table& table);
  /// Applies --device.count as --devices. Errors: invalid_argument if they differ, or for an invalid number.
  caf::error take_device_count(uint64_t count);
  /// The value of --devices, or the least number with which root and peer are valid.
  uint32_t fewest_devices() const;
  /// The options with `devices` as the default of --devices; may be called again with another number. Reads the file of
  /// --schedule. Errors: invalid_argument with the option, the value and what is allowed; as of `read_schedule_file`
  /// and `check_proof`.
  caf::expected<bench_options> options(uint32_t devices = bench_options{}.devices);

private:
  caf::error take_collective(uint32_t devices);
  caf::error take_schedule();
  caf::error take_sizes();

  bench_options result_;
  collective_options settings_;
  std::optional<uint64_t> min_bytes_, max_bytes_;
  std::optional<gpu_sim::ReduceOp> op_;
};

/// The algorithms to measure: the one that is named, or all of the kind.
std::vector<std::string> algorithms_for(const bench_options& x);

/// The sizes to measure, in bytes, ascending.
std::vector<uint64_t> sizes_of(const bench_options& x);

/// Bytes of memory that a device needs: its input and output at the largest size, aligned, and scratch.
uint64_t memory_for(const bench_options& x);

} // namespace ringmaster
