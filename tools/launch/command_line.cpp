#include "tools/launch/command_line.hpp"

#include "messages/errc.hpp"
#include "tools/launch/hostfile.hpp"

namespace ringmaster::launch {

namespace {

caf::error wrong(std::string text) {
  return make_error(errc::invalid_argument, std::move(text));
}

caf::expected<std::chrono::milliseconds> parse_timeout(const std::string& text) {
  constexpr int64_t ps_in_ms = 1'000'000'000;
  auto time = parse_duration_ps(text);
  if (!time)
    return std::move(time.error());
  if (*time < ps_in_ms)
    return wrong("\"" + text + "\" is less than 1ms");
  return std::chrono::milliseconds{*time / ps_in_ms};
}

} // namespace

void command_line::add_to(option_table& table) {
  table.form("--local N [options] [--] PROGRAM [ARGUMENT...]");
  table.form("--hostfile FILE [options] [--] PROGRAM [ARGUMENT...]");
  table.form("--ranks N [--hostfile FILE] [options] [--] PROGRAM [ARGUMENT...]");
  table.about(
    "Starts a coordinator here and nodes here or on other hosts, waits until all have joined, runs PROGRAM with "
    "RINGMASTER_COORDINATOR=HOST:PORT in its environment, and stops everything when PROGRAM has ended. With --ranks it "
    "starts no nodes, but PROGRAM N times: each process is a node with one device, and plays the rank that "
    "RINGMASTER_RANK says, of RINGMASTER_WORLD_SIZE (client/process_group.hpp).");
  table.rest("PROGRAM [ARGUMENT...]", program);
  table.number("--local", local_nodes, 1, max_nodes).says("N", "N nodes on this host").otherwise("");
  table.file("--hostfile", hostfile)
    .says("FILE", "one node a line: HOST [slots=DEVICES] [name=NAME]; # begins a comment");
  table.number("--ranks", ranks, 1, max_ranks)
    .says("N", "PROGRAM N times, a rank each, here or by the hostfile's slots in their order")
    .otherwise("");
  table.flag("--tag-output", tags_output).says("begins each line that a rank writes with \"[rank K] \"");
  table.number("--devices-per-node", devices_per_node, 1, node_place::max_devices)
    .says("K", "devices of a node that has no slots=, or ranks of a host");
  table.number("--port", port, 0, 65535).says("P", "the coordinator's TCP port").otherwise("0: any that is free");
  table.parsed("--timeout", timeout, parse_timeout)
    .says("T", "how long nodes, or ranks, may take to join, such as 500ms, 30s or 2min")
    .otherwise("30s");
  table.file("--conf", conf)
    .says("FILE", "configuration of the coordinator and the nodes, at the same path on every host");
  table.text("--journal", journal).says("DIR", "where the coordinator keeps its operation log").offers_directories();
  table.text("--address", address).says("HOST", "where other hosts reach this one").otherwise("its host name");
  table.file("--binary", binary).says("PATH", "the ringmaster program").otherwise("beside caf-run");
  table.text("--remote-binary", remote_binary).says("PATH", "the same on the other hosts").otherwise("the same path");
  table.text("--ssh", ssh).says("PROGRAM", "starts a node on another host");
  table.flag("--completion", prints_completion).says("prints a script that lets bash complete all this, and no more");
  table.flag("--man", prints_manual).says("prints the manual page, and no more");
  table.closing(
    "Each line that the coordinator or a node writes goes to standard error after its name. The standard streams "
    "of PROGRAM are its own; of ranks, standard input is rank 0's. SIGINT, SIGTERM, SIGHUP and SIGQUIT go to PROGRAM, "
    "all of its ranks; the second one goes to everything.\n\n"
    "A rank whose process ends is lost to the others, as any device that dies; they go on, and caf-run says which it "
    "was "
    "and how it ended.\n\n"
    "In an allocation of SLURM's neither --local nor --hostfile is needed: SLURM_JOB_NODELIST names the hosts, and "
    "SLURM_TASKS_PER_NODE their devices or ranks.\n\n"
    "Exit status: PROGRAM's own, or 128 + n if signal n ended it, of the first rank that failed; 125 if the cluster "
    "did not come up; 126 or 127 "
    "if PROGRAM cannot be run or is not there.");
  table.add_example("caf-run --local 4 -- ringmaster demo", "a coordinator, 4 nodes with 2 devices each, the demo");
  table.add_example("caf-run --ranks 4 -- ./my_program", "a coordinator, and my_program as ranks 0 to 3");
  table.add_example("caf-run --hostfile hosts -- ./my_program", "nodes on other hosts, by ssh");
}

caf::error command_line::check() const {
  if (prints_completion || prints_manual)
    return wrong(std::string{prints_manual ? "--man" : "--completion"} + " stands alone");
  if (local_nodes > 0 && !hostfile.empty())
    return wrong("give either --local N or --hostfile FILE");
  if (local_nodes > 0 && ranks > 0)
    return wrong("--ranks N makes every process of PROGRAM a node: leave --local away, or give --hostfile FILE");
  if (tags_output && ranks == 0)
    return wrong("--tag-output is for --ranks: the lines of one PROGRAM are its own");
  if (program.empty())
    return wrong("no PROGRAM: name what to run after the options, such as caf-run --local 2 -- ./my_program");
  return caf::none;
}

} // namespace ringmaster::launch
