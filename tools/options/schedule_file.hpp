#pragma once

#include "runtime/schedule/schedule_json.hpp"
#include "tools/options/collective_options.hpp"

namespace ringmaster {

/// --schedule FILE.
option& add_schedule_option(option_table& table, std::string& file);

/// The schedules in the file. Errors: io_error; corrupt, with the file's name, line and column.
caf::expected<schedule_set> read_schedule_file(const std::string& file);

/// Those of --schedule, if all that was told of the collective is so in the file, too; the number of bytes apart.
/// Errors: those of `read_schedule_file`; invalid_argument, naming the option, its value and the file's.
caf::expected<schedule_set> schedules_for(const collective_options& told, const char* ranks_option = "--ranks");

/// Errors: corrupt where the proof does not hold, with the file's name and the reason: the rank, the step.
caf::error check_proof(const std::string& file, const schedule_set& written);

/// How many times the file's collective so many bytes are. Errors: invalid_argument where they are no multiple.
caf::expected<uint64_t> factor_for(const char* option, uint64_t bytes, const collective_options& told,
                                   const schedule_set& written);

/// "file:NAME": how reports call the algorithm that a file has. What would not be plain in a report is '_' there.
std::string algorithm_name_of(const std::string& file);

} // namespace ringmaster
