#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace ringmaster {

// Where the files lie that come with a program: in the source tree that it was built in, beside the installation that
// it is of, or in the system. The working directory does not matter. Nothing is there: no file.

/// The directory of the running program; empty where the system does not say (/proc/self/exe).
std::filesystem::path program_directory();

/// The configuration that a program in `directory` reads unless it is told another: config/caf-application.conf of its
/// source tree, else etc/ringmaster/caf-application.conf of its installation, else
/// /etc/ringmaster/caf-application.conf.
std::optional<std::filesystem::path> find_configuration(const std::filesystem::path& directory = program_directory());

/// What is measured and published, such as "a100_iterations": in bench/data/ of its source tree, else in
/// share/ringmaster/ of its installation, else in /usr/share/ringmaster.
std::optional<std::filesystem::path> find_data(std::string_view name,
                                               const std::filesystem::path& directory = program_directory());

} // namespace ringmaster
