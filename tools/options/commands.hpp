#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster demo`: the course's program on real data, then again with a device that dies, as a story.
tool_command demo_command();
/// `ringmaster train`: trains the models that are registered (run_options.hpp). The same command can be a program.
tool_command train_for_real_command(const std::string& program = {});
/// `ringmaster bench`: measures collectives.
tool_command bench_command();
/// `ringmaster chart`: draws what bench has measured.
tool_command chart_command();
/// `ringmaster prove`: proves collective algorithms, or the schedules of a file.
tool_command prove_command();
/// `ringmaster draw`: shows the steps of a schedule, as text or as a picture.
tool_command draw_command();
/// `ringmaster simulate KIND`: a collective in virtual time; and below it train, memory and validate. Its status is 1
/// also for a collective that cannot end.
tool_command simulate_command();
/// `ringmaster simulate train`: a step of training in virtual time.
tool_command train_command();
/// `ringmaster simulate memory`: what training holds, by published formulas.
tool_command memory_command();
/// `ringmaster simulate validate`: the transformer cost model against measured steps.
tool_command validate_command();
/// `ringmaster plan`: the fastest ways to train. Its status is 1 where there is none.
tool_command plan_command();
/// `ringmaster partition`: which sample goes to which rank.
tool_command partition_command();
/// `ringmaster layout`: which rank has which part of each layer and of the data.
tool_command layout_command();
/// `ringmaster puzzles`: judges the reader's programs in examples/puzzles/. With a number its status is 0 where the
/// program trains the whole model, and 1 where it is wrong or not written yet; of all it only tells.
tool_command puzzles_command();
/// `ringmaster tune`: measures the constants for the choice of algorithms.
tool_command tune_command();
/// `ringmaster explain`: shows which algorithm is picked, and why.
tool_command explain_command();

// The commands for the processes of a cluster.

/// `ringmaster coordinator`: listens, keeps the journal, hosts no device. With a journal SIGTERM leaves its cluster to
/// the next one; else, and on SIGINT, the cluster ends.
tool_command coordinator_command();
/// `ringmaster node`: joins a coordinator with some devices, or waits for one that lists it in its configuration.
tool_command node_command();
/// `ringmaster certificates`: an authority and certificates of hosts, for TLS.
tool_command certificates_command();

/// `ringmaster secret --role ROLE`: the secret of a role, which is derived from the cluster's.
tool_command secret_command();

// The commands for a running cluster.

/// `ringmaster status`: what a cluster is doing, and which ranks the others wait for.
tool_command status_command();
/// `ringmaster info`: the members of a cluster; optionally waits for nodes or devices.
tool_command info_command();
/// `ringmaster kill`, `hang` and `slow`: inject faults into devices.
tool_command kill_command();
tool_command hang_command();
tool_command slow_command();
/// `ringmaster drain NODE`: removes a node without losing work.
tool_command drain_command();
/// `ringmaster destroy N`: destroys communicators.
tool_command destroy_command();
/// `ringmaster absent RANK:CAUSE...`: reports ranks whose processes have exited, so that others do not wait for them.
tool_command absent_command();
/// `ringmaster log DIR`: lists, filters and follows a journal, also of a running process, or exports it as a trace. In
/// color on a terminal unless NO_COLOR is set.
tool_command log_command();

} // namespace ringmaster

namespace ringmaster::launch {

/// caf-run as a command: starts a cluster, runs a program against it, and stops everything.
tool_command launch_command();

} // namespace ringmaster::launch
