#pragma once

#include "tools/launch/command_line.hpp"
#include "tools/launch/hostfile.hpp"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace ringmaster::launch {

using argument_list = std::vector<std::string>;

/// How long a paused process (SIGSTOP) may outlast all others.
inline constexpr std::chrono::seconds paused_limit{3};
/// "rank 1 is stopped by a signal, and all others ended 3 s ago: killing it"
std::string paused_text(const std::string& name);

/// `ringmaster coordinator`, which writes its port to `port_file`, if it is named. It listens at `host`; empty: at
/// loopback, or at all addresses if nodes on other hosts are to join.
argument_list coordinator_command(const command_line& line, const std::string& port_file, bool all_local,
                                  const std::string& host = {});

/// `ringmaster node`, which joins the coordinator at `address` ("HOST:PORT"), by ssh on a remote host. The remote shell
/// stops the node when its standard input is closed, also if this launcher is killed.
argument_list node_command(const command_line& line, const node_place& place, const std::string& address,
                           bool all_local);

/// The program as a rank on another host, by ssh, with the environment `variables` in the directory `directory`. It is
/// stopped when its standard input is closed. For each line of input (one a second) the remote shell checks whether it
/// is paused; after `paused_limit` it is killed there and reported.
argument_list remote_rank_command(const command_line& line, const rank_place& place,
                                  const std::vector<std::pair<std::string, std::string>>& variables,
                                  const std::string& directory);

/// `ringmaster info`, which waits until these nodes have joined; `limit` is rounded up to seconds.
argument_list info_command(const command_line& line, const std::vector<std::string>& names, const std::string& address,
                           std::chrono::milliseconds limit);

/// `ringmaster info`, which reports what was lost with the node; the coordinator has `limit` to notice.
argument_list gone_command(const command_line& line, const node_place& place, const std::string& address,
                           std::chrono::seconds limit);

/// `ringmaster-gateway`, which writes `ready_file` when it listens.
argument_list gateway_command(const command_line& line, const std::string& address, const std::string& ready_file);

/// `ringmaster absent`, which reports exited ranks; `ranks`: from `program_processes::ended`.
argument_list absent_command(const command_line& line, const std::vector<std::string>& ranks,
                             const std::string& address);

/// `text` as one word of a POSIX shell.
std::string shell_quote(const std::string& text);

} // namespace ringmaster::launch
