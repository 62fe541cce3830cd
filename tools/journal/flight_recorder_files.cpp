#include "tools/journal/flight_recorder_files.hpp"

#include "diagnosis/readers/journal_records.hpp"
#include "diagnosis/writers/flight_recorder_writer.hpp"
#include "messages/errc.hpp"
#include "tools/console/output_file.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace ringmaster {

caf::expected<uint64_t> write_flight_recorder_files(const std::vector<proto::Record>& records, const std::string& dir) {
  std::error_code problem;
  std::filesystem::create_directories(dir, problem);
  if (problem)
    return make_error(errc::io_error, fmt::format("cannot create the directory {}: {}", dir, problem.message()));
  auto job = diagnosis::journal_job(records);
  for (auto& rank : job.ranks)
    if (auto err = write_output_file((std::filesystem::path{dir} / diagnosis::dump_name(rank.rank)).string(),
                                     diagnosis::flight_recorder_dump(job, rank), "the dump"))
      return err;
  return job.ranks.size();
}

} // namespace ringmaster
