#include "tools/options/commands.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/drawing/drawing.hpp"
#include "runtime/drawing/runnable_part.hpp"
#include "runtime/proof/proof.hpp"
#include "tools/console/output_file.hpp"
#include "tools/options/schedule_file.hpp"

#include <fmt/format.h>

namespace ringmaster {

namespace {

struct draw_options {
  collective_options collective;
  std::string svg;
};

/// What is drawn, and what is said below its title.
struct drawing {
  walk_through story;
  std::string_view formula;
};

caf::expected<drawing> drawing_of(collective_options told) {
  if (told.kind && !told.count)
    told.count = has_v_variant(*told.kind) ? 1 : told.ranks.value_or(8);
  TRY(request, request_of(told));
  TRY(chosen, algorithms_of(told));
  const auto& which = *chosen->front();
  if (told.chunk)
    RETURN_ERROR(check_has_chunks(which.kind, std::string{which.name}));
  TRY(story, walk(which.kind, which.name, *request));
  return drawing{std::move(*story), which.formula};
}

/// Whether the ranks' steps fit together is all that a picture needs.
struct silent_observer : walk_observer {
  caf::error moved(step_ref, step_ref) override { return {}; }
};

caf::expected<drawing> drawing_of_file(const collective_options& told) {
  TRY(written, schedules_for(told));
  const auto& [kind, request, ranks] = *written;
  silent_observer observer;
  auto walked = walk_schedules(ranks, buffer_counts_of(kind, request), 1, observer);
  TRY(story, walk(kind, algorithm_name_of(told.schedule), request,
                  walked.fault ? runnable_part(kind, request, ranks) : ranks));
  if (walked.fault)
    story->fault = malformed(fmt::format("{}: {}", told.schedule, render(walked.fault)));
  else if (auto problem = check_proof(told.schedule, *written))
    story->fault = std::move(problem);
  const auto formula = story->fault ? "from a file, as far as it goes" : "from a file";
  return drawing{std::move(*story), formula};
}

caf::error write(const drawing& x, const std::string& svg_file, std::FILE* out) {
  if (svg_file.empty()) {
    fmt::print(out, "{}", text_of(x.story, x.formula));
    return caf::none;
  }
  RETURN_ERROR(write_output_file(svg_file, svg_of(x.story, x.formula), "the picture"));
  fmt::print(out, "Wrote {}.\n", svg_file);
  return caf::none;
}

class draw_call final : public command_call {
  void declare(option_table& table) override {
    auto& told = opts_.collective;
    table.about("Shows what a schedule does: who sends what to whom in each round, and what every rank has then.");
    add_collective_options(table, told, {.max = drawn_ranks_max});
    table.option_named("--algorithm").otherwise("the first");
    table.number("--count", told.count, 1, drawn_elements_max)
      .says("C", fmt::format("elements, 1 to {}: of the whole, or of each block where every rank has one",
                             drawn_elements_max))
      .otherwise("one for each rank, or 1");
    table.number("--chunk", told.chunk, 1, drawn_elements_max)
      .says("C", "elements of a piece, for pipelined algorithms")
      .otherwise("as the algorithm likes");
    add_hosts_option(table, told.hosts, "where the ranks lie, for hierarchical algorithms").otherwise("one host");
    table.file("--schedule", told.schedule)
      .says("FILE",
            "the schedules in FILE, whose kind, ranks, root and count they are; docs/schedule_format.md has the "
            "format. Schedules with a fault are drawn as far as they go; the fault is said below the picture, on "
            "standard error");
    table.file("--svg", opts_.svg).says("FILE", "writes a picture to FILE, as SVG, in place of the text");
    table.add_example("ringmaster draw broadcast --algorithm tree --ranks 8 --svg tree.svg", "a tree of eight");
  }

  caf::error check() override {
    TRY(drawn, opts_.collective.schedule.empty() ? drawing_of(opts_.collective) : drawing_of_file(opts_.collective));
    drawn_ = std::move(*drawn);
    return caf::none;
  }

  caf::expected<int> run(const console& to) override {
    RETURN_ERROR(write(drawn_, opts_.svg, to.out));
    if (drawn_.story.fault)
      return drawn_.story.fault;
    return exit_ok;
  }

  draw_options opts_;
  drawing drawn_;
};

} // namespace

tool_command draw_command() {
  return tool_command::of<draw_call>("draw", "who sends what to whom in a collective, as text or as a picture");
}

} // namespace ringmaster
