#include "tools/options/commands.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/console/output_file.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/streamed_table.hpp"
#include "tools/console/terminal.hpp"
#include "tools/options/collective_options.hpp"
#include "tools/options/schedule_file.hpp"
#include "tools/prove/prove_run.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace ringmaster {

namespace {

caf::expected<bool> prove_file(const prove_options& opts, std::FILE* out) {
  TRY(read, read_schedule_file(opts.schedule));
  auto found = prove(read->kind, read->request, read->ranks, opts.seed, order_of(opts));
  terminal paint{out};
  auto what = fmt::format("{}, {}", name_of(read->kind), text_of(read->kind, read->request));
  if (found.fault) {
    fmt::print(out, "{}: {}\n{}", what, paint.bad("there is a fault"),
               page_format::of_console(opts.wide).lines(render(found.fault)));
    return false;
  }
  fmt::print(out, "{}: {}\n", what, paint.good("the proof holds"));
  fmt::print(out, "{}\n", counted(found.rounds, "round"));
  for (size_t rank = 0; rank < read->ranks.size(); ++rank)
    fmt::print(out, "rank {}: {} sent in {}, {} received in {}\n", rank, counted(found.elements_sent[rank], "element"),
               counted(found.messages_sent[rank], "message"), found.elements_received[rank],
               found.messages_received[rank]);
  return true;
}

caf::expected<bool> write_file(const prove_options& opts, std::FILE* out) {
  schedule_set all{*opts.kind,
                   {.world_size = static_cast<uint32_t>(opts.ranks[0]),
                    .count = opts.counts[0],
                    .root = opts.roots.empty() ? 0 : static_cast<uint32_t>(opts.roots[0])},
                   {}};
  if (*opts.kind == proto::SEND_RECV)
    all.request.peer = (all.request.root + 1) % all.request.world_size;
  TRY(hosts, hosts_of_ranks(opts.hosts, all.request.world_size));
  all.request.hosts = std::move(*hosts);
  TRY(ranks, schedules_of(all.kind, opts.algorithm, all.request, opts));
  all.ranks = std::move(*ranks);
  RETURN_ERROR(write_output_file(opts.write, to_json(all), "the schedules"));
  fmt::print(out, "Wrote {} {}, {}, to {}: ringmaster prove --schedule proves it.\n", name_of(all.kind), opts.algorithm,
             text_of(all.kind, all.request), opts.write);
  return true;
}

std::string worlds_text(const std::vector<uint32_t>& worlds) {
  if (worlds.empty())
    return "none";
  if (worlds.size() == 1)
    return fmt::format("{}", worlds[0]);
  return fmt::format("{} from {} to {}", worlds.size(), worlds.front(), worlds.back());
}

/// A row for each algorithm. A narrow page leaves out CPU time and cases, in this order.
class proof_table {
public:
  proof_table(const page_format& page, const terminal& paint)
    : page_(page), paint_(paint), table_({{{"kind"}, 15, text_side::left},
                                          {{"algorithm"}, 20, text_side::left},
                                          {{"worlds"}, 20, text_side::left},
                                          {{"cases"}, 7, text_side::right, 2},
                                          {{"CPU time"}, 9, text_side::right, 1}},
                                         page) {}

  std::string head() const { return paint_.bold(table_.head()); }

  std::string row(const algorithm_proofs& x) const {
    auto text = table_.row({std::string{name_of(x.of->kind)}, std::string{x.of->name}, worlds_text(x.worlds),
                            std::to_string(x.proofs),
                            fmt::format("{:.2f} s", std::chrono::duration<double>{x.time}.count())});
    if (x.declined != 0)
      text += paint_.dim(
        page_.lines(fmt::format("  {} requests declined, the first: {}", x.declined, render(x.why_declined))));
    for (auto* fault : {&x.fault, &x.cost_fault})
      if (*fault)
        text += paint_.bad(page_.lines("  " + render(*fault)));
    return text;
  }

private:
  page_format page_;
  const terminal& paint_;
  streamed_table table_;
};

caf::expected<bool> prove_and_print(const prove_options& opts, std::FILE* out) {
  auto start = std::chrono::steady_clock::now();
  terminal paint{out};
  progress shown{"prove"};
  const proof_table table{page_format::of_console(opts.wide), paint};
  auto head = table.head(); // printed above the first row
  auto all = prove_algorithms(
    opts, {[&](double part) { shown.at(part); },
           [&](const algorithm_proofs& x) { shown.print(out, std::exchange(head, "") + table.row(x)); }});
  if (!all)
    return std::move(all.error());
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  uint64_t proofs = 0, faults = 0;
  for (auto& x : *all) {
    proofs += x.proofs;
    faults += x.fault || x.cost_fault ? 1 : 0;
  }
  if (proofs == 0)
    return invalid("there was nothing to prove");
  shown.print(out, fmt::format("\n{} proof{}, {} ({:.1f} s)\n", with_commas(proofs), proofs == 1 ? "" : "s",
                               faults == 0 ? paint.good(proofs == 1 ? "which holds" : "all hold")
                                           : paint.bad(fmt::format("{} of {} at fault", faults,
                                                                   counted(all->size(), "algorithm"))),
                               took.count()));
  return faults == 0;
}

class prove_call final : public command_call {
  void declare(option_table& table) override { opts_.add_to(table); }
  caf::error check() override { return opts_.check(); }

  caf::expected<int> run(const console& to) override {
    TRY(holds, !opts_.schedule.empty() ? prove_file(opts_, to.out)
               : !opts_.write.empty()  ? write_file(opts_, to.out)
                                       : prove_and_print(opts_, to.out));
    return *holds ? exit_ok : exit_failed;
  }

  prove_options opts_;
};

} // namespace

tool_command prove_command() {
  return tool_command::of<prove_call>("prove", "proves collective algorithms, or a schedule in a file");
}

} // namespace ringmaster
