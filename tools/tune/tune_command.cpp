#include "tools/options/commands.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/configuration/routes.hpp"
#include "runtime/text/ini_section.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/text/utf8.hpp"
#include "tools/clients/cluster_connection.hpp"
#include "tools/clients/free_devices.hpp"
#include "tools/console/output_file.hpp"
#include "tools/console/page_format.hpp"
#include "tools/console/progress.hpp"
#include "tools/options/configured_call.hpp"
#include "tools/tune/tune_fit.hpp"
#include "tools/tune/tune_measure.hpp"
#include "tools/tune/tune_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>
#include <unistd.h>

namespace ringmaster {

namespace {

struct tune_options {
  std::string write;
  bool check = false;
  bool wide = false; ///< Lines are not wrapped.
  std::string transport = "all";
  std::optional<uint32_t> devices; ///< Of a joined cluster; else all free ones, up to 16.
  tune_effort effort;
};

constexpr uint32_t devices_min = 2, devices_max = 64, devices_usual = 16;

/// The kind of machine, without its name.
std::string machine_text(uint32_t cores) {
  auto text = fmt::format("measured by ringmaster tune on {}, pages of {}", counted(cores, "core"),
                          bytes_text(static_cast<uint64_t>(::sysconf(_SC_PAGESIZE))));
  std::ifstream huge{"/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"};
  if (uint64_t bytes = 0; huge >> bytes)
    text += fmt::format(" and {}", bytes_text(bytes));
  return text;
}

/// A warning about other load on this machine; empty if there is little.
std::string busy_text(uint32_t cores) {
  constexpr double idle_part = 0.5;
  double load = 0;
  const bool is_known = ::getloadavg(&load, 1) == 1;
  return is_known && load > idle_part * cores ? fmt::format("busy, {:.1f} runnable threads on {}: measured times are "
                                                            "too long, and the fit may be far off",
                                                            load, counted(cores, "core"))
                                              : std::string{};
}

caf::expected<std::string> with_section(const std::string& file, const std::string& section) {
  std::string text;
  if (std::filesystem::exists(file)) {
    std::ifstream in{file, std::ios::binary};
    if (!in || std::filesystem::is_directory(file))
      return make_error(errc::io_error, fmt::format("the configuration file {} cannot be read", file));
    text.assign(std::istreambuf_iterator<char>{in}, {});
    configuration known; // an invalid file is not changed
    RETURN_ERROR(known.read(std::vector<std::string>{}, file));
    text.erase(0, byte_order_mark_bytes(text));
  }
  auto changed = replace_section(text, "costs", section);
  if (!changed)
    return make_error(errc::invalid_config, fmt::format("{}: {}", file, render(changed.error())));
  return *changed;
}

/// What would keep the section from being written, asked before a minute's measuring.
caf::error check_writable(const std::string& file) {
  auto directory = std::filesystem::absolute(file).parent_path();
  if (::access(directory.c_str(), W_OK | X_OK) != 0)
    return make_error(errc::io_error,
                      fmt::format("cannot write '{}': {}: {}", file, directory.string(), std::strerror(errno)));
  if (std::filesystem::is_directory(file))
    return make_error(errc::io_error, fmt::format("cannot write '{}': it is a directory", file));
  auto possible = with_section(file, "[costs]\n");
  return possible ? caf::error{} : std::move(possible.error());
}

caf::error measure(configuration& cfg, const tune_options& opts, std::vector<cost_sample>& samples) {
  progress shown{"tune"};
  const bool both = opts.transport == "all";
  auto take = [&](caf::expected<std::vector<cost_sample>> x) -> caf::error {
    if (!x)
      return std::move(x.error());
    samples.insert(samples.end(), x->begin(), x->end());
    return caf::none;
  };
  auto in_process = [&](double part) { shown.at(both ? part / 2 : part); };
  auto between = [&](double part) { shown.at(both ? 0.5 + part / 2 : part); };
  if (opts.transport != "network")
    RETURN_ERROR(take(measure_in_process(cfg, opts.effort, in_process)));
  return opts.transport != "process" ? take(measure_between_processes(opts.effort, between)) : caf::none;
}

class tune_call final : public configured_call {
  void declare_options(option_table& table) override {
    table.about(
      "Measures collectives in this process and between node processes on the loopback interface, or, with --join, "
      "between "
      "the ranks of that cluster, and fits the constants of section [costs] to the times. \"auto\" picks algorithms by "
      "these constants, and `ringmaster explain` shows how. Prints the section; --write updates a file.");
    table.file("--write", opts_.write)
      .says("FILE", "writes the section [costs] into this configuration file; the rest of the file is kept");
    table.flag("--check", opts_.check).says("only compares the current constants with the measurement");
    table.word("--transport", opts_.transport, {"process", "network", "all"}).says("T", "what to measure: {words}");
    table.number("--repeats", opts_.effort.repeats, 1, 1000)
      .says("R", "repeats of the whole measurement; medians count");
    table.number("--samples", opts_.effort.samples, 1, 1000)
      .says("S", "samples of each point in a repeat; medians count");
    table.bytes("--max-bytes", opts_.effort.bytes_max)
      .says("SIZE", "the largest size of a rank, 8 to 16M; for a fit at least 2M, or 1M in a process");
    join_options(table);
    table.number("--devices", opts_.devices, devices_min, devices_max)
      .says("N", "devices of the joined cluster")
      .otherwise(fmt::format("all free ones, up to {}", devices_usual));
    table.flag("--wide", opts_.wide).says("does not wrap lines that are wider than the terminal, or than 100 columns");
    table.common({"--write", "--check", "--transport", "--repeats", "--samples", "--max-bytes", "--join", "--timeout",
                  "--devices", "--wide"});
    table.closing(
      "On a joined cluster it measures two ranks of different nodes, one rank of each node, and all ranks. Constants "
      "of a "
      "single process are not measured and keep their values. The section lists the places of the ranks. \"auto\" uses "
      "the configuration of the cluster's coordinator.");
  }

  caf::error check() override {
    RETURN_ERROR(check_no_rank());
    if (opts_.effort.bytes_max < 8 || opts_.effort.bytes_max > 16u << 20)
      return invalid(fmt::format("--max-bytes: {} is not from 8 to 16M", opts_.effort.bytes_max));
    if (opts_.check && !opts_.write.empty())
      return invalid("--check fits nothing, so there is nothing to --write");
    joined_ = !coordinator_elsewhere(cfg_.values()).empty();
    if (joined_ && opts_.transport == "process")
      return invalid("--transport process: the devices are in other processes; without caf-run or --join it is "
                     "measured in this one");
    const auto wanted = opts_.transport == "process" ? bytes_wanted_in_process : bytes_wanted_between;
    if (!opts_.check && opts_.effort.bytes_max < wanted)
      return make_error(
        errc::invalid_argument,
        fmt::format("--max-bytes {}: such sizes do not determine a bandwidth {}; use {} or more, or --check, "
                    "which fits nothing",
                    size_text(opts_.effort.bytes_max),
                    opts_.transport == "process" ? "in a process" : "between processes", size_text(wanted)));
    if (!joined_ && opts_.devices)
      return invalid("--devices is for a joined cluster: give --join HOST:PORT");
    return opts_.write.empty() ? caf::error{} : check_writable(opts_.write);
  }

  caf::expected<int> run(const console& to) override {
    auto cores = std::max(1u, std::thread::hardware_concurrency());
    const auto busy = busy_text(cores);
    if (!busy.empty())
      fmt::print(to.err, "ringmaster tune: this machine is {}\n", busy);
    std::vector<cost_sample> samples;
    auto remark = machine_text(cores);
    RETURN_ERROR(joined_ ? measure_joined(to, samples, remark) : measure(cfg_, opts_, samples));
    if (!busy.empty())
      remark += "; it was " + busy; // for later readers of the file
    TRY(fitted, opts_.check ? caf::expected<tuned_costs>{tuned_costs{cfg_.values(), {}, {}, {}, {}}}
                            : fit_costs(samples, cfg_.values(), cores));
    TRY(text, comparison_text(samples, fitted->values, cores));
    fmt::print(to.out, "{}", page_format::of_console(opts_.wide).lines(*text));
    if (opts_.check) {
      fmt::print(to.out, "\nThe constants are those of {}.\n", cfg_.origin_of("costs"));
      return exit_ok;
    }
    return report(*fitted, remark, to);
  }

  caf::error measure_joined(const console& to, std::vector<cost_sample>& samples, std::string& remark) {
    auto opts = cfg_.values();
    if (opts.log.level == "info")
      opts.log.level = "warn";
    caf::actor_system system{cfg_};
    TRY(home, open_cluster("ringmaster tune", system, opts, to.err));
    client user{system, (*home)->coordinator(), std::chrono::seconds{60}};
    TRY(cluster, await_free(user, "tune", opts_.devices.value_or(devices_min), opts.node.join_timeout, to.err));
    auto free = static_cast<uint32_t>(free_devices(*cluster).size());
    auto group = user.comm_init(opts_.devices.value_or(std::min(free, devices_usual))); // in the order that users get
    if (!group)
      return std::move(group.error());
    rank_layout ranks{*group, *cluster};
    RETURN_ERROR(user.destroy(id_of(*group)));
    fmt::print(to.out, "{}\n{}\nnot measured: the constants of a single process, local-* and joint-*\n\n",
               ranks.summary(), fmt::join(ranks.nodes(), "\n"));
    progress shown{"tune"};
    auto measured = ringmaster::measure_joined(user, ranks, may_go(cluster->route(), &route_facts::in_place),
                                               opts_.effort, [&](double part) { shown.at(part); });
    if (!measured)
      return std::move(measured.error());
    samples = std::move(*measured);
    remark = fmt::format("between processes: measured by ringmaster tune on {}; the others were not", ranks.summary());
    return caf::none;
  }

  caf::expected<int> report(const tuned_costs& fitted, const std::string& remark, const console& to) const {
    auto section = costs_section(fitted.values, remark);
    fmt::print(to.out, "\n{}\n{}", page_format::of_console(opts_.wide).lines(fit_text(fitted)), section);
    if (opts_.write.empty())
      return exit_ok;
    auto changed = with_section(opts_.write, section);
    RETURN_ERROR(changed ? write_output_file(opts_.write, *changed, "the configuration") : changed.error());
    fmt::print(to.out, "\nWrote section [costs] of {}.\n", opts_.write);
    return exit_ok;
  }

  tune_options opts_;
  bool joined_ = false; ///< To another cluster.
};

} // namespace

tool_command tune_command() {
  return tool_command::of<tune_call>(
    "tune", "measures the constants for the choice of algorithms, and writes them into the configuration");
}

} // namespace ringmaster
