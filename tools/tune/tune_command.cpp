#include "tools/tune/tune_command.hpp"

#include "messages/errc.hpp"
#include "runtime/text/ini_section.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/options/option_table.hpp"
#include "tools/console/output_file.hpp"
#include "tools/options/program.hpp"
#include "tools/tune/tune_measure.hpp"
#include "tools/tune/tune_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <unistd.h>

namespace ringmaster {

namespace {

constexpr auto tune_help = R"(usage: ringmaster tune [options]

Measures what collectives take here, in this process and between node processes on the loopback interface, and fits the
constants of section [costs] to it: those from which "auto" picks an algorithm and `ringmaster explain` explains it.
Prints them; the configuration stays as it is, unless --write says otherwise.

  --write FILE      puts the section [costs] into this configuration file; everything else in it stays as it is
  --check           fits nothing: holds the constants in use against the measurement
  --transport T     process, network or all: what is measured (all)
  --repeats R       of the whole; medians count (3)
  --samples S       of each point in a repeat; medians count (5)
  --max-bytes B     of one rank, 8 to 16M (16M)
  --section.key=V   any key of config/caf-application.conf, such as --config-file=FILE
)";

struct tune_options {
  std::string write;
  bool check = false;
  bool process = true, network = true;
  tune_effort effort;
};

caf::expected<tune_options> parse(const std::vector<std::string>& args) {
  tune_options result;
  option_table table{"tune"};
  table.text("--write", result.write);
  table.flag("--check", result.check);
  table.number("--repeats", result.effort.repeats, 1, 1000);
  table.number("--samples", result.effort.samples, 1, 1000);
  table.bytes("--max-bytes", result.effort.bytes_max);
  table.value("--transport", [&](const std::string& x) -> caf::error {
    result.process = x != "network";
    result.network = x != "process";
    if (x == "process" || x == "network" || x == "all")
      return caf::none;
    return make_error(errc::invalid_argument, fmt::format("\"{}\" is not process, network or all", x));
  });
  if (auto problem = table.read(args))
    return problem;
  if (result.effort.bytes_max < 8 || result.effort.bytes_max > 16u << 20)
    return make_error(errc::invalid_argument, fmt::format("--max-bytes: {} is not from 8 to 16M", result.effort.bytes_max));
  if (result.check && !result.write.empty())
    return make_error(errc::invalid_argument, "--check fits nothing, so there is nothing to --write");
  return result;
}

/// What kind of machine it was, and nothing of which one.
std::string machine_text(uint32_t cores) {
  auto text = fmt::format("measured by ringmaster tune on {}, pages of {}", counted(cores, "core"),
                          bytes_text(static_cast<uint64_t>(::sysconf(_SC_PAGESIZE))));
  std::ifstream huge{"/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"};
  if (uint64_t bytes = 0; huge >> bytes)
    text += fmt::format(" and {}", bytes_text(bytes));
  return text;
}

/// Whoever else computes here is measured, too.
void warn_if_busy(uint32_t cores) {
  constexpr double idle_part = 0.5;
  if (double load = 0; ::getloadavg(&load, 1) == 1 && load > idle_part * cores)
    fmt::print(stderr, "ringmaster: this machine is busy, {:.1f} runnable threads on {}: what is measured is slower than it "
                       "need be, and a fit to it may be far off\n", load, counted(cores, "core"));
}

caf::expected<std::string> with_section(const std::string& file, const std::string& section) {
  std::string text;
  if (std::filesystem::exists(file)) {
    std::ifstream in{file, std::ios::binary};
    if (!in || std::filesystem::is_directory(file))
      return make_error(errc::io_error, fmt::format("the configuration file {} cannot be read", file));
    text.assign(std::istreambuf_iterator<char>{in}, {});
    configuration known; // what cannot be read is not written to
    if (auto problem = known.read(std::vector<std::string>{}, file))
      return problem;
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
    return make_error(errc::io_error, fmt::format("cannot write '{}': {}: {}", file, directory.string(), std::strerror(errno)));
  if (std::filesystem::is_directory(file))
    return make_error(errc::io_error, fmt::format("cannot write '{}': it is a directory", file));
  auto possible = with_section(file, "[costs]\n");
  return possible ? caf::error{} : std::move(possible.error());
}

caf::error measure(configuration& cfg, const tune_options& opts, std::vector<cost_sample>& samples) {
  auto take = [&](caf::expected<std::vector<cost_sample>> x) -> caf::error {
    if (!x)
      return std::move(x.error());
    samples.insert(samples.end(), x->begin(), x->end());
    return caf::none;
  };
  if (opts.process)
    if (auto problem = take(measure_in_process(cfg, opts.effort)))
      return problem;
  return opts.network ? take(measure_between_processes(opts.effort)) : caf::none;
}

} // namespace

int tune_command(const std::vector<std::string>& args) {
  if (std::any_of(args.begin(), args.end(), [](auto& x) { return x == "--help" || x == "-h"; })) {
    fmt::print("{}", tune_help);
    return 0;
  }
  configuration cfg;
  if (auto problem = cfg.read(args, "config/caf-application.conf"))
    return report(problem, 2);
  auto opts = parse(cfg.remainder);
  if (!opts)
    return report(opts.error(), 2);
  if (auto problem = opts->write.empty() ? caf::error{} : check_writable(opts->write))
    return report(problem, 2);
  auto cores = std::max(1u, std::thread::hardware_concurrency());
  warn_if_busy(cores);
  std::vector<cost_sample> samples;
  if (auto problem = measure(cfg, *opts, samples))
    return report(problem);
  auto fitted = opts->check ? caf::expected<tuned_costs>{tuned_costs{cfg.values(), {}, {}, {}}}
                            : fit_costs(samples, cfg.values(), cores);
  if (!fitted)
    return report(fitted.error());
  auto text = comparison_text(samples, fitted->values, cores);
  if (!text)
    return report(text.error());
  fmt::print("{}", *text);
  if (opts->check) {
    fmt::print("\nThe constants are those of {}.\n", cfg.origin_of("costs"));
    return 0;
  }
  auto section = costs_section(fitted->values, machine_text(cores));
  fmt::print("\n{}\n{}", fit_text(*fitted), section);
  if (opts->write.empty())
    return 0;
  auto changed = with_section(opts->write, section);
  if (auto problem = changed ? replace_file(opts->write, *changed, "the configuration") : changed.error())
    return report(problem);
  fmt::print("\nWrote section [costs] of {}.\n", opts->write);
  return 0;
}

} // namespace ringmaster
