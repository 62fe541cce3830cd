#include "tools/options/commands.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/text/json_field.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/console/ending_signals.hpp"
#include "tools/console/output_file.hpp"
#include "tools/console/streamed_table.hpp"
#include "tools/puzzles/puzzle_check.hpp"
#include "training/pictures/train_picture.hpp"
#include "training/pictures/train_trace.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ringmaster {

namespace {

struct puzzles_options {
  const puzzle* only = nullptr; ///< Null: all.
  bool json = false;
  bool wide = false;      ///< The table shows all columns.
  std::string svg, trace; ///< Files; empty: none.
};

std::string_view words_of(verdict x) {
  switch (x) {
    case verdict::not_written_yet: return "not written yet";
    case verdict::wrong: return "wrong";
    case verdict::right: return "right, but slower or larger than the reference";
    case verdict::solved: break;
  }
  return "solved";
}

bool is_right(const puzzle_result& x) {
  return x.judged >= verdict::right;
}

std::string short_verdict(const puzzle_result& x) {
  if (x.judged != verdict::right)
    return std::string{words_of(x.judged)};
  return fmt::format("right, but {}", x.slower && x.larger ? "slower and larger" : x.slower ? "slower" : "larger");
}

std::string sentence_of(const puzzle& which, const puzzle_result& x) {
  switch (x.judged) {
    case verdict::not_written_yet:
      return fmt::format("not written yet. Write it, then: ./run build && build/release/ringmaster puzzles {}",
                         which.number);
    case verdict::wrong: return "wrong. " + render(x.error);
    case verdict::right: return short_verdict(x) + " than the reference. It trains the whole model.";
    case verdict::solved: break;
  }
  return "solved. It trains the whole model, takes no longer than the reference, and holds no more.";
}

std::string time_of(const puzzle_result& x) {
  return is_right(x) ? fmt::format("{:.6g}", x.time) : "-";
}

std::string memory_of(const puzzle_result& x) {
  return is_right(x) ? std::to_string(x.peak_memory) : "-";
}

std::string text_of(const puzzle& which, const puzzle_result& stub, const puzzle_result& solution) {
  auto& m = which.trained;
  return fmt::format("Puzzle {}: {}. {}, {}, a global batch of {}.\n\n{}\n\n", which.number, which.name,
                     counted(which.ranks, "rank"), counted(m.layers, "layer"), m.global_batch, which.task)
         + fmt::format("stub      {}\nverdict   {}\n\n", which.stub_file(), sentence_of(which, stub))
         + fmt::format("{:<14} {:>8} {:>12}\n", "", "time", "peak memory")
         + fmt::format("{:<14} {:>8} {:>12}\n", "yours", time_of(stub), memory_of(stub))
         + fmt::format("{:<14} {:>8.6g} {:>12}\n", "reference", which.reference_time, which.reference_memory)
         + fmt::format("{:<14} {:>8} {:>12}   read it in {}\n", "our solution", time_of(solution), memory_of(solution),
                       which.solution_file);
}

json_value json_of(const puzzle& which, const puzzle_result& stub, const puzzle_result& solution) {
  auto if_right = [](const puzzle_result& x, auto number) { return is_right(x) ? json_value(number) : json_value{}; };
  return {{"number", which.number},
          {"name", which.name},
          {"ranks", which.ranks},
          {"layers", which.trained.layers},
          {"batches", which.trained.global_batch},
          {"stub", which.stub_file()},
          {"verdict", words_of(stub.judged)},
          {"error", stub.error ? json_value(render(stub.error)) : json_value{}},
          {"time", if_right(stub, stub.time)},
          {"peak_memory", if_right(stub, stub.peak_memory)},
          {"reference_time", which.reference_time},
          {"reference_memory", which.reference_memory},
          {"solution", which.solution_file},
          {"solution_time", if_right(solution, solution.time)},
          {"solution_memory", if_right(solution, solution.peak_memory)}};
}

/// The user's program may never end.
puzzle_result check_in_time(const puzzle& which) {
  time_limit limit{
    std::chrono::seconds{20},
    fmt::format(
      "ringmaster puzzles: {} has not ended in 20 s: does a rank go round in a loop in which it begins no operation?",
      which.stub_file())};
  return check_stub(which);
}

/// Prints row by row: a puzzle that does not end must not hide the others. A narrow page leaves out its memory,
/// reference and peak memory, in this order.
void print_table(std::FILE* out, const page_format& page) {
  const streamed_table table{{{{"puzzle"}, 31, text_side::left},
                              {{"verdict"}, 28, text_side::left},
                              {{"time"}, 8},
                              {{"peak memory"}, 12, text_side::right, 3},
                              {{"reference"}, 12, text_side::right, 2},
                              {{"its memory"}, 12, text_side::right, 1}},
                             page};
  fmt::print(out, "{}", table.head());
  for (auto& which : puzzles()) {
    std::fflush(out);
    auto stub = check_in_time(which);
    fmt::print(out, "{}",
               table.row({fmt::format("{}  {}", which.number, which.name), short_verdict(stub), time_of(stub),
                          memory_of(stub), fmt::format("{:.6g}", which.reference_time),
                          std::to_string(which.reference_memory)}));
  }
  fmt::print(
    out, "\n{}{}", page.lines(table.note()),
    page.line("Time is in the puzzles' units, memory in elements. `ringmaster puzzles N` shows the task of puzzle N."));
}

std::string list_of_all() {
  std::string text{'['};
  for (auto& which : puzzles()) {
    text += which.number > 0 ? ",\n" : "";
    text += json_text(json_of(which, check_in_time(which), check_solution(which)));
  }
  return text + "]\n";
}

class puzzles_call final : public command_call {
  void declare(option_table& table) override {
    const auto last = puzzles().size() - 1;
    table.about(
      "The eight LLM training puzzles (Sasha Rush, 2023): write a training strategy that takes no longer, and holds no "
      "more, than the reference, which is the original's solution. Without N it says how far you are; with N it has "
      "the task of puzzle N, and what your program for it comes to in virtual time.\n\n"
      "Your program is in examples/puzzles/puzzle_N.cpp. `./run build` compiles it into this program.");
    auto choose = [this, last](const std::string& text) -> caf::error {
      auto number = parse_whole(text, 0, last);
      if (!number)
        return invalid(fmt::format("there is no puzzle \"{}\"; there are 0 to {}", text, last));
      if (opts_.only != nullptr)
        return invalid(fmt::format("one puzzle at a time, or none for all, not {} and {}", opts_.only->number,
                                   *number));
      opts_.only = &puzzles()[*number];
      return caf::none;
    };
    std::vector<std::string> numbers;
    for (auto& x : puzzles())
      numbers.push_back(std::to_string(x.number));
    table.positional("N", choose).offers(std::move(numbers));
    table.file("--svg", opts_.svg).says("FILE", "with N: a picture of your program's schedule");
    table.file("--trace", opts_.trace)
      .says("FILE",
            "with N: a trace of it, for ui.perfetto.dev or chrome://tracing; one unit of time is a millisecond");
    table.flag("--json", opts_.json).says("one object a puzzle instead of the text, in a list without N");
    table.flag("--wide", opts_.wide)
      .says("shows all columns; lines of at most 100 columns, or of the terminal's, leave out the reference's memory, "
            "its time and the peak memory, in this order and as far as necessary");
    table.closing(
      "With N the status is 0 if your program trains the whole model, 1 if it is wrong or not written yet.");
  }

  caf::error check() override {
    RETURN_ERROR(check_outputs_differ({{"--svg", opts_.svg}, {"--trace", opts_.trace}}));
    if (opts_.only == nullptr && !(opts_.svg.empty() && opts_.trace.empty()))
      return invalid("--svg and --trace are of one puzzle: say which, such as ringmaster puzzles 2 --svg mine.svg");
    return caf::none;
  }

  caf::expected<int> run(const console& to) override {
    if (opts_.only != nullptr) {
      auto status = run_one(*opts_.only, to.out);
      RETURN_ERROR(write_files(*opts_.only, to.out));
      return status;
    }
    if (opts_.json)
      fmt::print(to.out, "{}", list_of_all());
    else
      print_table(to.out, page_format::of_console(opts_.wide));
    return exit_ok;
  }

  int run_one(const puzzle& which, std::FILE* out) const {
    auto stub = check_in_time(which), solution = check_solution(which);
    if (opts_.json) {
      fmt::print(out, "{}\n", json_text(json_of(which, stub, solution)));
    } else {
      fmt::print(out, "{}", page_format::of_console(opts_.wide).lines(text_of(which, stub, solution)));
    }
    return is_right(stub) ? exit_ok : exit_failed;
  }

  caf::error write_files(const puzzle& which, std::FILE* out) const {
    if (opts_.svg.empty() && opts_.trace.empty())
      return caf::none;
    TRY(found, outcome_of_stub(which));
    const auto& costs = training::puzzle_costs();
    caf::expected<std::string> picture{std::string{}}, trace{std::string{}};
    if (!opts_.svg.empty())
      picture = picture_of({which.name, which.trained, which.ranks, &costs}, *found);
    if (!opts_.trace.empty())
      trace = trace_of(*found, costs);
    auto write = [&](const std::string& file, auto& text, const char* what) -> caf::error {
      if (file.empty())
        return caf::none;
      if (!text)
        return std::move(text.error());
      RETURN_ERROR(write_output_file(file, *text, what));
      if (!opts_.json)
        fmt::print(out, "Wrote {}.\n", file);
      return caf::none;
    };
    RETURN_ERROR(write(opts_.svg, picture, "the picture"));
    return write(opts_.trace, trace, "the trace");
  }

  puzzles_options opts_;
};

} // namespace

tool_command puzzles_command() {
  return tool_command::of<puzzles_call>("puzzles", "training strategies to write yourself, judged in virtual time");
}

} // namespace ringmaster
