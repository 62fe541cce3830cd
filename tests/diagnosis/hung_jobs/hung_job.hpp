#pragma once

#include "diagnosis/findings/diagnosis.hpp"
#include "diagnosis/records/job_records.hpp"
#include "tests/diagnosis/hung_jobs/step_programs.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster::test {

/// What is wrong with one rank of a job from one of its calls on.
enum class job_fault : uint8_t {
  none,
  stops, ///< Its program never comes to the call.
  skips, ///< Its program leaves the call out.
  other_collective,
  other_size,
  other_datatype,
  other_root,
  other_order, ///< It exchanges the call and the next one.
  other_group,
  slow,
  dies,           ///< It leaves no dump.
  kernel_hangs,   ///< Its GPU never starts the call.
  in_data_loader, ///< As `stops`, and a stack says where.
  in_checkpoint,
  no_communicator, ///< It never joins the creation of a new communicator of all ranks.
  no_partner       ///< It leaves a send out, or stops before a receive's counterpart.
};
std::string_view name_of(job_fault x);
std::span<const job_fault> job_faults();

/// What a hung job leaves, and the truth about it.
struct hung_job {
  diagnosis::job_records records; ///< Of all ranks but a dead one.
  std::vector<std::string> texts; ///< Logs and stacks, besides the records.
  uint32_t culprit = 0;
  diagnosis::fault_kind truth = diagnosis::fault_kind::none;
  std::string story; ///< For messages of tests.
};

/// Runs three whole steps of the programs and a fourth one with the fault, until no rank can go on. Each rank's program
/// is up to four calls ahead of its GPU, which executes calls in order; a collective completes when all of its ranks
/// have started it and match; a send completes at once. `seed`: which rank and call. None: the layout has no such call.
std::optional<hung_job> hang(const job_programs& programs, job_fault fault, uint32_t seed);

} // namespace ringmaster::test
