#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace ringmaster {

// The files that come with a program: in its source tree, in its installation, or in the system's directories. The
// working directory does not matter. None if there is no such file.

/// The directory of the running program (/proc/self/exe); empty if the system does not provide it.
std::filesystem::path program_directory();

/// The default configuration of a program in `directory`: config/caf-application.conf of its
/// source tree, else etc/ringmaster/caf-application.conf of its installation, else
/// /etc/ringmaster/caf-application.conf.
std::optional<std::filesystem::path> find_configuration(const std::filesystem::path& directory = program_directory());

/// Measured and published data, such as "a100_iterations": in bench/data/ of its source tree, else in
/// share/ringmaster/ of its installation, else in /usr/share/ringmaster.
std::optional<std::filesystem::path> find_data(std::string_view name,
                                               const std::filesystem::path& directory = program_directory());

} // namespace ringmaster
