#pragma once

#include "tools/launch/command_line.hpp"
#include "tools/launch/hostfile.hpp"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace ringmaster::launch {

using argument_list = std::vector<std::string>;

/// A process that somebody has stopped may outlast all others by so long.
inline constexpr std::chrono::seconds standing_limit{3};
/// "rank 1 is stopped by a signal, and all others ended 3 s ago: killing it"
std::string text_of_stopped(const std::string& name);

/// `ringmaster coordinator`, which writes the port that it listens on to `port_file`. It listens at `host`; empty: at
/// loopback, or at all addresses where nodes on other hosts are to join.
argument_list coordinator_command(const command_line& line, const std::string& port_file, bool all_local,
                                  const std::string& host = {});

/// `ringmaster node`, joining the coordinator at `address` ("HOST:PORT"); for a remote host, what ssh is to run.
/// The remote shell ends the node when its standard input ends, which it does however this launcher ends.
argument_list node_command(const command_line& line, const node_place& place, const std::string& address,
                           bool all_local);

/// The program as a rank on another host: what ssh is to run, with the environment in `variables`, in the directory
/// `directory`. It ends when its standard input does; each line of that has it looked at: one that is stopped, and is
/// found so for `standing_limit` by a line a second, is killed there, which is said.
argument_list remote_rank_command(const command_line& line, const rank_place& place,
                                  const std::vector<std::pair<std::string, std::string>>& variables,
                                  const std::string& directory);

/// `ringmaster info`, which waits until nodes of these names have joined; `limit` is rounded up to seconds.
argument_list info_command(const command_line& line, const std::vector<std::string>& names, const std::string& address,
                           std::chrono::milliseconds limit);

/// `ringmaster info`, which says in one line what the node has taken with it; it gives the coordinator `limit` to
/// notice.
argument_list gone_command(const command_line& line, const node_place& place, const std::string& address,
                           std::chrono::seconds limit);

/// `ringmaster absent`, which says what has become of ranks' processes; `ranks` as `program_processes::ended` has them.
argument_list absent_command(const command_line& line, const std::vector<std::string>& ranks,
                             const std::string& address);

/// `text` as one word of a POSIX shell.
std::string shell_quote(const std::string& text);

} // namespace ringmaster::launch
