#pragma once

#include "messages/gpu_sim.pb.h"
#include "runtime/collective.hpp"

#include <caf/expected.hpp>

#include <string>
#include <vector>

namespace ringmaster {

struct bench_options {
  proto::CollectiveKind kind = proto::ALL_REDUCE;
  std::string algorithm = "auto"; ///< "all": every one that the kind has.
  uint32_t devices = 8;
  uint64_t min_bytes = 8;
  uint64_t max_bytes = 64u << 20;
  uint64_t factor = 8;
  proto::DataType datatype = proto::FLOAT32;
  gpu_sim::ReduceOp op = gpu_sim::SUM;
  uint32_t root = 0;
  uint32_t iterations = 0; ///< 0: by size.
  uint32_t samples = 20;
  uint64_t chunk_bytes = 0;
  bool in_place = false;
  bool single = false;     ///< One call, and wait for its end, instead of back to back.
  bool memory_limit = true;
  std::string json;        ///< A file; empty: none.
};

extern const char* const bench_help;

/// Errors: invalid_argument, naming the option, the value and what is allowed.
caf::expected<bench_options> parse_bench_options(const std::vector<std::string>& args);

/// "64K", "1M", "1.5G", "4096": bytes, with binary prefixes. Errors: invalid_argument.
caf::expected<uint64_t> parse_bytes(const std::string& option, const std::string& text);

} // namespace ringmaster
