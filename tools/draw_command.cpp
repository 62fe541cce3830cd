#include "tools/draw_command.hpp"

#include "messages/errc.hpp"
#include "runtime/drawing/drawing.hpp"
#include "tools/collective_options.hpp"
#include "tools/output_file.hpp"

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
  --svg FILE     writes a picture to FILE, as SVG (text)
  --help         this text
)";

struct draw_options {
  collective_options collective;
  uint32_t count = 0; ///< 0: not given.
  uint32_t chunk = 0;
  std::string svg;
  bool help = false;
};

caf::expected<draw_options> parse(std::span<const std::string> args) {
  draw_options opts;
  option_table table{"draw"};
  add_collective_options(table, opts.collective, drawn_ranks_max);
  table.number("--count", opts.count, 1, drawn_elements_max);
  table.number("--chunk", opts.chunk, 1, drawn_elements_max);
  table.text("--svg", opts.svg);
  if (auto problem = table.read(args))
    return problem;
  opts.help = table.help();
  return opts;
}

caf::expected<plan_request> request_of(const draw_options& opts) {
  auto whole = opts.collective;
  if (whole.kind)
    whole.count = opts.count != 0 ? opts.count : has_v_variant(*whole.kind) ? 1 : opts.collective.ranks;
  auto request = request_of(whole);
  if (request)
    request->chunk = opts.chunk;
  return request;
}

caf::error draw(const draw_options& opts, const algorithm& which, const plan_request& request, std::FILE* out) {
  auto story = walk(which.kind, which.name, request);
  if (!story)
    return std::move(story.error());
  if (opts.svg.empty()) {
    fmt::print(out, "{}", text_of(*story, which.formula));
    return caf::none;
  }
  if (auto problem = write_output_file(opts.svg, svg_of(*story, which.formula), "the picture"))
    return problem;
  fmt::print(out, "Wrote {}.\n", opts.svg);
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
  auto request = request_of(*opts);
  if (!request)
    return failed(request.error(), exit_usage);
  auto chosen = algorithms_of(opts->collective);
  if (!chosen)
    return failed(chosen.error(), exit_usage);
  if (auto problem = draw(*opts, *chosen->front(), *request, out))
    return failed(problem, exit_failed);
  return 0;
}

} // namespace ringmaster
