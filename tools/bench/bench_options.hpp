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
  std::string algorithm = "auto"; ///< "all": every one that the kind has.
  uint32_t devices = 8;
  bool devices_given = false; ///< Else a cluster of other processes decides: all that are free.
  uint64_t min_bytes = 8;
  uint64_t max_bytes = 64u << 20;
  bool max_bytes_given = false; ///< Else such a cluster's memory decides, too.
  uint64_t factor = 8;
  proto::DataType datatype = proto::FLOAT32;
  gpu_sim::ReduceOp op = gpu_sim::SUM;
  uint32_t root = 0;
  uint32_t peer = 1;
  uint32_t iterations = 0; ///< 0: by size.
  uint32_t samples = 20;
  uint32_t warmups = 2;     ///< Samples before them.
  uint64_t chunk_count = 0; ///< Elements; 0: as the network asks for.
  bool in_place = false;
  bool uneven = false; ///< Ranks' blocks have different sizes.
  bool deterministic = false;
  bool single = false; ///< One call, and wait for its end, instead of back to back.
  bool no_memory_limit = false;
  std::string json; ///< A file; empty: none.
  /// What `algorithm` is to be: the schedules of a file, proved. Kind, devices, root, peer and sizes are theirs.
  std::optional<schedule_set> written;
};

/// The collective that the options name, of so many elements.
proto::Collective collective_of(const bench_options& x, uint64_t count);

/// What the command line says of them. Must not move once it has been added to a table.
class bench_arguments {
public:
  static constexpr uint32_t devices_min = 2, devices_max = 1024;

  void add_to(option_table& table);
  /// What --device.count says, in place of --devices. Errors: invalid_argument where they differ, and for a number that
  /// --devices does not take.
  caf::error take_device_count(uint64_t count);
  /// What --devices says, else the fewest with which the other options may be right: root and peer are among them.
  uint32_t fewest_devices() const;
  /// On so many devices where --devices does not say how many; may be asked again with another number. Reads the file
  /// of --schedule, too. Errors: invalid_argument, naming the option, the value and what is allowed; those of
  /// `read_schedule_file` and `check_proof`.
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

} // namespace ringmaster
