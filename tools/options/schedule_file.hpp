#pragma once

#include "runtime/schedule/schedule_json.hpp"
#include "tools/options/collective_options.hpp"

namespace ringmaster {

/// --schedule FILE.
option& add_schedule_option(option_table& table, std::string& file);

/// The schedules in the file. Errors: io_error; corrupt, with the file's name, line and column.
caf::expected<schedule_set> read_schedule_file(const std::string& file);

/// The schedules of --schedule, if the other options agree with the file, except for the number of bytes. Errors: as of
/// `read_schedule_file`; invalid_argument with the option, its value and the file's.
caf::expected<schedule_set> schedules_for(const collective_options& asked, const char* ranks_option = "--ranks");

/// Errors: corrupt if the proof does not hold, with the file's name, the rank and the step.
caf::error check_proof(const std::string& file, const schedule_set& written);

/// The factor by which `bytes` is larger than the file's collective. Errors: invalid_argument if it is not a multiple.
caf::expected<uint64_t> factor_for(const char* option, uint64_t bytes, const collective_options& asked,
                                   const schedule_set& written);

/// "file:NAME": the name of a file's algorithm in reports. Unusual characters are replaced by '_'.
std::string algorithm_name_of(const std::string& file);

} // namespace ringmaster
