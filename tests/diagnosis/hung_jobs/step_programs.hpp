#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster::test {

/// One communication call of a rank's program.
struct program_call {
  enum class form : uint8_t { collective, send, receive };

  form what = form::collective;
  std::string name;
  uint32_t group = 0; ///< Index in job_programs::groups.
  uint32_t peer = 0;  ///< Global rank of a send's or receive's other side.
  uint32_t root = UINT32_MAX;
  uint64_t elements = 1;
  std::string type = "Float";
};

struct program_group {
  std::string name;
  std::vector<uint32_t> members;
};

/// The communication of each rank in one training step, in program order.
struct job_programs {
  std::vector<program_group> groups;
  std::vector<std::vector<program_call>> ranks;
};

/// "ddp", "fsdp", "3d" (tensor 2, data 2, pipeline 2), "experts"
std::vector<std::string_view> layout_names();

/// What our own strategy for the layout calls in a step of 8 ranks, as recorded from its run in virtual time, between
/// what a training loop adds: a broadcast of the step's options, sums of metrics over each half of the job, and the sum
/// of the gradient's norm.
job_programs programs_of(std::string_view layout);

} // namespace ringmaster::test
