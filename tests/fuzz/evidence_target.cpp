// What a job that hangs has left, as `ringmaster diagnose` reads it: dumps of PyTorch (pickles and JSON), status of
// NCCL, stacks, logs.
#include "diagnosis/findings/diagnosis.hpp"
#include "diagnosis/readers/file_evidence.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace ringmaster::fuzz {

namespace {

/// A part for each file but the last, which is the rest after an empty part.
void read_files(std::string_view bytes) {
  std::vector<diagnosis::file_evidence> files;
  for (input_parts parts{bytes}; !parts.empty() && files.size() < 8;) {
    auto content = parts.part();
    const bool is_last = content.empty();
    if (is_last)
      content = parts.rest();
    auto read = diagnosis::read_evidence("rank_" + std::to_string(files.size()), content);
    if (!read)
      return;
    files.push_back(std::move(*read));
    if (is_last)
      break;
  }
  const auto job = diagnosis::assemble(std::move(files));
  if (job)
    (void)diagnosis::diagnose(*job);
}

const fuzz_target fuzz_evidence{"evidence", read_files};

} // namespace

} // namespace ringmaster::fuzz
