#include "tools/prove/draw_command.hpp"

#include "messages/errc.hpp"
#include "runtime/drawing/drawing.hpp"
#include "runtime/proof/proof.hpp"
#include "tools/console/output_file.hpp"
#include "tools/options/schedule_file.hpp"

#include <fmt/format.h>

namespace ringmaster {

namespace {

constexpr int exit_failed = 1;
constexpr int exit_usage = 2;

constexpr auto draw_help = R"(usage: ringmaster draw KIND [options]

Shows what a schedule does: who sends what to whom in each round, and what every rank has then.

  KIND           all_reduce, reduce, broadcast, all_gather, reduce_scatter, all_to_all, gather, scatter, barrier,
                 send_recv
  --algorithm A  one of the kind's algorithms (the first)
  --ranks N      the world size, 1 to 16 (8)
  --root R       of reduce, broadcast, gather and scatter; who sends in send_recv (0)
  --peer R       who receives in send_recv (the rank after the root)
  --count C      elements, 1 to 4096: of the whole, or of each block where every rank has one (one for each rank, or 1)
  --chunk C      elements of a piece, for pipelined algorithms (as the algorithm likes)
  --schedule FILE
                 the schedules in FILE, whose kind, ranks, root and count they are; docs/schedule_format.md has the
                 format. What they do wrong is said below the picture,
                 on standard error; ranks that wait for each other for ever have no picture.
  --svg FILE     writes a picture to FILE, as SVG (text)
  --help         this text
)";

struct draw_options {
  collective_options collective;
  std::string svg;
  bool help = false;
};

caf::expected<draw_options> parse(std::span<const std::string> args) {
  draw_options opts;
  option_table table{"draw"};
  add_collective_options(table, opts.collective, drawn_ranks_max);
  table.number("--count", opts.collective.count, 1, drawn_elements_max);
  table.number("--chunk", opts.collective.chunk, 1, drawn_elements_max);
  table.text("--schedule", opts.collective.schedule);
  table.text("--svg", opts.svg);
  if (auto problem = table.read(args))
    return problem;
  opts.help = table.help();
  return opts;
}

/// What is drawn, and what is said below its title and below it.
struct drawing {
  walk_through story;
  std::string_view formula;
  std::string fault{}; ///< Of what somebody wrote.
};

caf::expected<drawing> drawing_of(collective_options told) {
  if (told.kind && !told.count)
    told.count = has_v_variant(*told.kind) ? 1 : told.ranks.value_or(8);
  auto request = request_of(told);
  if (!request)
    return std::move(request.error());
  auto chosen = algorithms_of(told);
  if (!chosen)
    return std::move(chosen.error());
  const auto& which = *chosen->front();
  auto story = walk(which.kind, which.name, *request);
  if (!story)
    return std::move(story.error());
  return drawing{std::move(*story), which.formula};
}

/// Whether the ranks' steps fit together is all that a picture needs.
struct silent_observer : walk_observer {
  std::string moved(step_ref, step_ref) override { return {}; }
};

caf::expected<drawing> drawing_of_file(const collective_options& told) {
  auto written = schedules_for(told);
  if (!written)
    return std::move(written.error());
  const auto& [kind, request, ranks] = *written;
  silent_observer observer;
  if (auto walked = walk_schedules(ranks, buffer_counts_of(kind, request), 1, observer); !walked.fault.empty())
    return make_error(errc::invalid_argument, fmt::format("{}: {}", told.schedule, walked.fault));
  auto story = walk(kind, algorithm_name_of(told.schedule), request, ranks);
  if (!story)
    return std::move(story.error());
  auto problem = check_proof(told.schedule, *written);
  return drawing{std::move(*story), "as somebody wrote it", problem ? render(problem) : ""};
}

caf::error write(const drawing& x, const std::string& svg_file, std::FILE* out) {
  if (svg_file.empty()) {
    fmt::print(out, "{}", text_of(x.story, x.formula));
    return caf::none;
  }
  if (auto problem = write_output_file(svg_file, svg_of(x.story, x.formula), "the picture"))
    return problem;
  fmt::print(out, "Wrote {}.\n", svg_file);
  return caf::none;
}

} // namespace

int draw_command(std::span<const std::string> args, std::FILE* out, std::FILE* err) {
  auto failed = [&](const caf::error& problem, int code) {
    fmt::print(err, "ringmaster draw: {}\n", render(problem));
    return code;
  };
  auto opts = parse(args);
  if (!opts)
    return failed(opts.error(), exit_usage);
  if (opts->help) {
    fmt::print(out, "{}", draw_help);
    return 0;
  }
  auto drawn = opts->collective.schedule.empty() ? drawing_of(opts->collective) : drawing_of_file(opts->collective);
  if (!drawn)
    return failed(drawn.error(), exit_usage);
  auto problem = write(*drawn, opts->svg, out);
  std::fflush(out); // before what is wrong
  if (!problem && !drawn->fault.empty())
    problem = make_error(errc::invalid_argument, drawn->fault);
  return problem ? failed(problem, exit_failed) : 0;
}

} // namespace ringmaster
