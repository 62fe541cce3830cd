#include "tools/diagnose/diagnose_command.hpp"

#include "messages/errc.hpp"
#include "tools/console/output_file.hpp"
#include "tools/diagnose/diagnose_report.hpp"
#include "tools/diagnose/evidence_files.hpp"

#include <fmt/format.h>

namespace ringmaster {

namespace {

constexpr int exit_ambiguous = 3, exit_no_hang = 4;

class diagnose_call final : public command_call {
  void declare(option_table& table) override {
    table.about(
      "Says why a distributed job hangs: which rank is the cause, of which kind, in which collective of which process "
      "group, and who waits for whom. It reads what the job left, in any mixture: dumps of PyTorch's Flight Recorder "
      "(pickle or JSON, one a rank), NCCL RAS status (text or JSON), NCCL_DEBUG=INFO logs, logs with watchdog lines, "
      "py-spy dumps, or a journal of Ringmaster. The form of a file follows from its content. Nothing in a file is "
      "executed.\n\n"
      "Exit status: 0 a cause was found, 3 the evidence is ambiguous, 4 no rank waits, 1 nothing could be read, 2 a "
      "wrong "
      "command line.");
    table
      .positional("PATH",
                  [this](const std::string& text) -> caf::error {
                    paths_.push_back(text);
                    return caf::none;
                  })
      .many()
      .needed()
      .offers_files();
    table.flag("--json", json_).says("one JSON object");
    table.file("--svg", svg_).says("FILE", "also draw ranks against time to FILE");
    table.add_example("ringmaster diagnose dumps/ train.log", "all dumps below a directory, and a log");
  }

  caf::error check() override {
    if (paths_.empty())
      return invalid("the evidence is missing: ringmaster diagnose PATH... [options]");
    return caf::none;
  }

  caf::expected<int> run(const console& to) override {
    auto job = read_job(paths_);
    if (!job)
      return std::move(job.error());
    auto found = diagnosis::diagnose(*job);
    if (!svg_.empty())
      if (auto problem = write_output_file(svg_, picture_of(*job, found), "the picture"))
        return problem;
    fmt::print(to.out, "{}", json_ ? json_of(*job, found) : report_of(*job, found, page_format::of_console(false)));
    if (found.root.kind == diagnosis::fault_kind::none)
      return exit_no_hang;
    return found.root.sure == diagnosis::certainty::ambiguous ? exit_ambiguous : int{exit_ok};
  }

  std::vector<std::string> paths_;
  std::string svg_;
  bool json_ = false;
};

} // namespace

tool_command diagnose_command() {
  return tool_command::of<diagnose_call>("diagnose",
                                         "why a job hangs: the rank, the kind and the collective, from dumps "
                                         "and logs");
}

} // namespace ringmaster
